/** Nodes for tests of the maintenance of machines. */
import type { MaintenanceRecord } from '../../../../api/node/node-maintenance.ts'
import type { OsReport } from '../../../../api/node/os-updates.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { MaintenanceNode } from '../node-step.ts'

export const startMs = Date.parse('2026-01-02T03:00:00Z')

export const nothingPending: OsReport = {
  ...{ upgrades: true, security: 0, others: 0, packages: [] },
  ...{ rebootRequired: false, rebootBecause: [] },
}

/** A Ready node with two security updates, which may restart. */
export function aMachine(over: Partial<MaintenanceNode> = {}): MaintenanceNode {
  return {
    ...{ name: 'pi-1', link: '', zone: '', isController: false, isReady: true, bootID: 'boot-1' },
    ...{ isCordoned: false, isOwnCordon: false, canReboot: true, isOnTrial: false, ailing: [] },
    report: { ...nothingPending, security: 2, packages: ['openssl', 'libssl3'] },
    ...{ reboot: undefined, record: undefined, podsLeft: [] },
    ...over,
  }
}

/** A node that is in this phase since `secondsAgo`, cordoned by its maintenance. */
export function aMaintained(
  record: Pick<MaintenanceRecord, 'phase'> & Partial<MaintenanceRecord>,
  { secondsAgo = 60, ...over }: Partial<MaintenanceNode> & { readonly secondsAgo?: number } = {},
): MaintenanceNode {
  return aMachine({
    ...{ isCordoned: true, isOwnCordon: true },
    record: { id: 'a1', since: rfc3339(startMs - secondsAgo * 1000), ailing: [], ...record },
    ...over,
  })
}
