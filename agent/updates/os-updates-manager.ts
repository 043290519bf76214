/**
 * Loop: reports the pending updates of the operating system and whether a reboot is required, and hands the upgrade that the controller
 * wants to the units outside of the agent. The agent counts and installs nothing itself: `bramble-os-updates.service` writes what is
 * pending, `bramble-os-upgrade.service` installs it, and an upgrade of the agent's own package does not end that.
 */
import { isDeepStrictEqual } from 'node:util'
import { isUpgradeID, type OsReport, type OsUpgrade } from '../../api/node/os-updates.ts'
import { alarm } from '../../daemon/alarm.ts'
import type { Cell, Reader } from '../../daemon/cell.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { MachineCondition } from '../node/status/conditions.ts'
import { type OsFacts, osReport, rebootCondition } from './os-report.ts'

/** The files by which the agent and the units agree, and those of the system. */
export interface OsFiles {
  facts(): Promise<Omit<OsFacts, 'isEnabled' | 'wanted'>>
  /** What was saved last. */
  wanted(): Promise<OsUpgrade | undefined>
  /** On disk once it has resolved. Undefined: none is wanted. */
  saveWanted(wanted: OsUpgrade | undefined): Promise<void>
  /** Whether the unit that counts may download the package lists; on disk once it has resolved. */
  saveRefresh(isAllowed: boolean): Promise<void>
}

export type OsUpdatesNeeds = {
  readonly files: OsFiles
  readonly settings: {
    /** `osUpgrades` of the configuration. */
    readonly isEnabled: boolean
    readonly isMetered: boolean
  }
  readonly reads: {
    /** Undefined: nothing was received of the controller since the start of the agent. `upgrade` undefined: it wants none. */
    readonly osUpgrade: Reader<{ readonly upgrade: OsUpgrade | undefined } | undefined>
  }
  readonly writes: {
    readonly osReport: Cell<OsReport | undefined>
    readonly osConditions: Cell<readonly MachineCondition[]>
  }
  readonly clock: Clock
  readonly log: Log
}

/** apt and the units write their files without a notification. While an upgrade is wanted the controller waits for its end. */
const everyMs = 60_000
const upgradingMs = 5_000

export function osUpdatesManager({ files, settings, reads, writes, clock, log }: OsUpdatesNeeds): Loop {
  const wake = alarm(clock)
  const { isEnabled, isMetered } = settings

  /** What is saved afterwards. Without a message since the start what was saved before still holds. */
  const keepWanted = async (): Promise<OsUpgrade | undefined> => {
    const saved = await files.wanted()
    const received = reads.osUpgrade.get()
    const upgrade = received === undefined ? saved : received.upgrade
    const wanted = upgrade !== undefined && isUpgradeID(upgrade.id) ? upgrade : undefined
    const allowed = isEnabled ? wanted : undefined
    if (!isDeepStrictEqual(allowed, saved)) {
      await files.saveWanted(allowed)
      if (allowed !== undefined) log.info('The controller wants the security updates of this machine', { ...allowed })
    }
    return wanted
  }

  const pass = async (): Promise<number> => {
    await files.saveRefresh(isEnabled && !isMetered)
    const wanted = await keepWanted()
    const report = osReport({ ...(await files.facts()), isEnabled, wanted })
    writes.osReport.set(report)
    writes.osConditions.set([rebootCondition(report)])
    const { outcome } = report.upgrade ?? {}
    return outcome === 'waiting' || outcome === 'running' ? upgradingMs : everyMs
  }

  return {
    name: 'os-updates',
    async run(signal) {
      const stopListening = reads.osUpgrade.onChange(wake.ring)
      try {
        while (!signal.aborted) {
          const waitMs = await pass().catch((error: unknown) => {
            log.warn('Cannot read or save the state of the updates of the operating system', { error })
            return everyMs
          })
          await wake.sleep(waitMs, signal)
        }
      } finally {
        stopListening()
      }
    },
  }
}
