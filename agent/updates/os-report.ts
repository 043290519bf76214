/** What a node reports of its operating system: to the controller, and as a condition for people. Decides only. */
import { isUpgradeID, type OsReport, type OsUpgrade, rebootRequiredCondition } from '../../api/node/os-updates.ts'
import type { MachineCondition } from '../node/status/conditions.ts'
import { newerKernel } from './kernel-version.ts'

/** What `bramble-os-updates.service` has counted. `listsFrom`: when the package lists were downloaded, in milliseconds since 1970. */
export type PendingUpdates = {
  readonly listsFromMs: number
  readonly security: number
  readonly others: number
  readonly packages: readonly string[]
}

/** What `bramble-os-upgrade.service` writes of an upgrade. */
export type UpgradeResult = {
  readonly id: string
  readonly outcome: 'running' | 'done' | 'failed'
  readonly reason?: string | undefined
}

export type OsFacts = {
  /** `osUpgrades` of the configuration. */
  readonly isEnabled: boolean
  readonly pending: PendingUpdates | undefined
  /** The upgrade that the controller wants; undefined: none. */
  readonly wanted: OsUpgrade | undefined
  readonly result: UpgradeResult | undefined
  /** /run/reboot-required exists. */
  readonly isRebootRequested: boolean
  /** Lines of /run/reboot-required.pkgs. */
  readonly rebootPackages: readonly string[]
  /** As `uname -r` has it; '' where it cannot be read. */
  readonly runningKernel: string
  readonly installedKernels: readonly string[]
}

const mostNames = 16
const longestName = 64
const longestReason = 300
const mostUpdates = 100_000

export function osReport(facts: OsFacts): OsReport {
  const { isEnabled, pending, isRebootRequested, rebootPackages, runningKernel, installedKernels } = facts
  const kernel = newerKernel(runningKernel, installedKernels)
  const packages = [...new Set(rebootPackages.map((name) => name.trim()))].filter((name) => name !== '')
  const because = [...(kernel === undefined ? [] : [`kernel ${kernel}`]), ...packages]
  const upgrade = upgradeOf(facts)
  return {
    upgrades: isEnabled,
    ...(pending !== undefined && {
      ...listsFrom(pending.listsFromMs),
      security: bounded(pending.security),
      others: bounded(pending.others),
    }),
    packages: named(pending?.packages ?? []),
    rebootRequired: isRebootRequested || kernel !== undefined,
    rebootBecause: isRebootRequested || kernel !== undefined ? named(because) : [],
    ...(upgrade && { upgrade }),
  }
}

/** False: nothing on this machine waits for a reboot, as far as its files show. */
export function rebootCondition({ rebootRequired, rebootBecause }: OsReport): MachineCondition {
  const type = rebootRequiredCondition
  if (!rebootRequired)
    return { type, status: 'False', reason: 'NoRebootRequired', message: 'no update waits for a reboot' }
  const because = rebootBecause.length === 0 ? 'an update' : rebootBecause.join(', ')
  const message = `reboot the machine: ${because} takes effect only then`
  return { type, status: 'True', reason: 'UpdateRequiresReboot', message }
}

function upgradeOf({ isEnabled, wanted, result }: OsFacts): OsReport['upgrade'] {
  if (wanted === undefined || !isUpgradeID(wanted.id)) return undefined
  const { id } = wanted
  // What was finished before the configuration changed is reported as it is.
  if (result?.id === id) {
    const { outcome, reason } = result
    return { id, outcome, ...(reason !== undefined && { reason: printable(reason).slice(0, longestReason) }) }
  }
  if (isEnabled) return { id, outcome: 'waiting' }
  return { id, outcome: 'failed', reason: 'the configuration of the agent does not have osUpgrades: true' }
}

function listsFrom(ms: number): { readonly listsFrom?: string } {
  return ms > 0 && ms < 8.64e15 ? { listsFrom: new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z') } : {}
}

function bounded(count: number): number {
  return Math.max(0, Math.min(mostUpdates, Math.floor(count)))
}

function named(names: readonly string[]): readonly string[] {
  return names.slice(0, mostNames).map((name) => printable(name).slice(0, longestName))
}

function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').trim()
}
