/** The maintenance of one machine: what comes next. Decides only; all that it remembers is the record on the Node. */
import type { MaintenancePhase, MaintenanceRecord } from '../../../api/node/node-maintenance.ts'
import type { OsReport } from '../../../api/node/os-updates.ts'
import type { RebootStatus } from '../../../api/node/remote-reboot.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import type { LinkAndZone } from '../rollouts/node-places.ts'
import type { MaintenanceRules } from './maintenance-rules.ts'

export type MaintenanceNode = LinkAndZone & {
  readonly name: string
  /** A controller runs on it. */
  readonly isController: boolean
  readonly isReady: boolean
  /** '' where the node reports none. */
  readonly bootID: string
  readonly isCordoned: boolean
  /** The cordon is one of the maintenance. */
  readonly isOwnCordon: boolean
  /** The agent restarts its machine on request. */
  readonly canReboot: boolean
  /** A release of the agent is on trial: another reboot would count as one of its attempts. */
  readonly isOnTrial: boolean
  /** Conditions of the machine's health that are True. */
  readonly ailing: readonly string[]
  readonly report: OsReport | undefined
  /** What became of the request to reboot of this maintenance; undefined: it was not seen yet. */
  readonly reboot: RebootStatus['state'] | undefined
  readonly record: MaintenanceRecord | undefined
  /** `namespace/name` of pods that a drain has to wait for. Empty unless the node drains. */
  readonly podsLeft: readonly string[]
}

export type NodeStep = {
  readonly node: string
  /** The record that was decided on; undefined: none. */
  readonly before: MaintenanceRecord | undefined
  readonly record: MaintenanceRecord
  /** `take`: cordon the node as its owner. `give`: uncordon it if it has the owner's annotation. */
  readonly cordon?: 'take' | 'give'
  /** Request the reboot of the machine, at `requestedAt` of the record. */
  readonly reboots?: true
  /** Undefined: a part of the same phase. */
  readonly message?: string
}

export type StepFacts = {
  readonly rules: MaintenanceRules
  /** Nothing new is begun: a failure or an operator pauses the maintenance. */
  readonly isPaused: boolean
  /** Failures up to then no longer count: an operator has resumed it since. */
  readonly resumedMs: number
  readonly nowMs: number
}

const ends: readonly MaintenancePhase[] = ['Done', 'Failed', 'Abandoned', 'Postponed']

export function isUnderMaintenance({ record }: Pick<MaintenanceNode, 'record'>): boolean {
  return record !== undefined && !ends.includes(record.phase)
}

/** What the machine needs: security updates, a reboot, or neither. Undefined: neither. */
export function needOf({ report }: Pick<MaintenanceNode, 'report'>): 'upgrade' | 'reboot' | undefined {
  if (report === undefined) return undefined
  if (report.upgrades && (report.security ?? 0) > 0) return 'upgrade'
  return report.rebootRequired ? 'reboot' : undefined
}

/** Begins with the cordon. `nowMs` makes the id: a node has one maintenance at a time. */
export function firstStep({ name: node, record: before, ailing }: MaintenanceNode, nowMs: number): NodeStep {
  const since = rfc3339(nowMs)
  return {
    node,
    before,
    record: { id: since, phase: 'Draining', since, ailing },
    cordon: 'take',
    message: 'Cordoned for its maintenance: its pods are evicted within their disruption budgets',
  }
}

/** Undefined: it waits. */
export function nodeStep(node: MaintenanceNode, facts: StepFacts): NodeStep | undefined {
  return phaseStep(node, facts) ?? disowned(node)
}

/** Somebody has uncordoned the node: a cordon that a person sets afterwards is not one of the maintenance. */
function disowned({ name: node, record, isOwnCordon, isCordoned }: MaintenanceNode): NodeStep | undefined {
  return record !== undefined && isOwnCordon && !isCordoned
    ? { node, before: record, record, cordon: 'give' }
    : undefined
}

function phaseStep(node: MaintenanceNode, facts: StepFacts): NodeStep | undefined {
  switch (node.record?.phase) {
    case 'Draining':
      return drainingStep(node, node.record, facts)
    case 'Upgrading':
      return upgradingStep(node, node.record, facts)
    case 'Rebooting':
      return rebootingStep(node, node.record, facts)
    case 'Checking':
      return checkingStep(node, node.record, facts)
    case 'Failed':
      return failedStep(node, node.record, facts)
    default:
      return undefined
  }
}

/** When time alone changes the decision, in milliseconds since 1970. */
export function stepDueMs({ record }: MaintenanceNode, rules: MaintenanceRules): number | undefined {
  if (record === undefined) return undefined
  const [sinceMs, healthySinceMs] = [sinceMsOf(record), Date.parse(record.healthySince ?? '')]
  switch (record.phase) {
    case 'Draining':
      return sinceMs + rules.drainSeconds * 1000
    case 'Upgrading':
      return sinceMs + rules.upgradeSeconds * 1000
    case 'Rebooting':
      return sinceMs + rules.rebootSeconds * 1000
    case 'Checking':
      return Number.isFinite(healthySinceMs)
        ? healthySinceMs + rules.settleSeconds * 1000
        : sinceMs + rules.healthSeconds * 1000
    default:
      return sinceMs + rules.againSeconds * 1000
  }
}

/** Since when the record is in its phase. A time that cannot be read is long ago. */
export function sinceMsOf({ since }: MaintenanceRecord): number {
  const ms = Date.parse(since)
  return Number.isFinite(ms) ? ms : 0
}

function drainingStep(node: MaintenanceNode, record: MaintenanceRecord, facts: StepFacts): NodeStep | undefined {
  if (!node.isCordoned || !node.isOwnCordon)
    return failed(node, record, facts, 'it was uncordoned by somebody while it was drained', 'give')
  if (facts.isPaused) return ended(node, record, facts, 'Postponed', 'the maintenance was paused while it was drained')
  if (node.podsLeft.length === 0)
    return needOf(node) === 'upgrade'
      ? entered(node, record, facts, 'Upgrading', 'Its security updates are installed')
      : afterUpgrade(node, record, facts)
  if (!isOver(record, facts.rules.drainSeconds, facts)) return undefined
  const [first = '', ...more] = node.podsLeft
  const others = more.length === 0 ? '' : ` and ${more.length} more`
  const reason = `it could not be drained within ${facts.rules.drainSeconds} s: ${first}${others} stayed`
  return failed(node, record, facts, reason, 'give')
}

function upgradingStep(node: MaintenanceNode, record: MaintenanceRecord, facts: StepFacts): NodeStep | undefined {
  const own = node.report?.upgrade?.id === record.id ? node.report.upgrade : undefined
  if (own?.outcome === 'done') return afterUpgrade(node, record, facts)
  if (own?.outcome === 'failed') return failed(node, record, facts, `its upgrade failed: ${own.reason ?? 'no reason'}`)
  if (!isOver(record, facts.rules.upgradeSeconds, facts)) return undefined
  return failed(node, record, facts, `it did not report the end of its upgrade within ${facts.rules.upgradeSeconds} s`)
}

/**
 * A machine that may not restart has its updates all the same: the condition RebootRequired stays. Undefined: it waits for the end of the trial
 * of a release, of which the reboot would be an attempt.
 */
function afterUpgrade(node: MaintenanceNode, record: MaintenanceRecord, facts: StepFacts): NodeStep | undefined {
  const { report, canReboot, bootID, isOnTrial } = node
  if (report?.rebootRequired !== true || !canReboot || bootID === '')
    return entered(node, record, facts, 'Checking', 'Its health is checked')
  if (isOnTrial) return undefined
  const step = entered(node, record, facts, 'Rebooting', 'It restarts')
  return { ...step, record: { ...step.record, bootID, requestedAt: step.record.since }, reboots: true }
}

function rebootingStep(node: MaintenanceNode, record: MaintenanceRecord, facts: StepFacts): NodeStep | undefined {
  const { bootID, reboot, name } = node
  if (bootID !== '' && bootID !== record.bootID)
    return entered(node, record, facts, 'Checking', 'It has restarted, and its health is checked')
  if (reboot === 'Refused') return failed(node, record, facts, 'the request to restart it was refused')
  if (isOver(record, facts.rules.rebootSeconds, facts))
    return failed(node, record, facts, `it did not restart within ${facts.rules.rebootSeconds} s`)
  // A program may hold an inhibitor lock for longer than a request lasts.
  if (reboot !== 'Expired') return undefined
  const requestedAt = rfc3339(facts.nowMs)
  return requestedAt === record.requestedAt
    ? undefined
    : { node: name, before: record, record: { ...record, requestedAt }, reboots: true }
}

function checkingStep(node: MaintenanceNode, record: MaintenanceRecord, facts: StepFacts): NodeStep | undefined {
  const { isReady, ailing, report, name } = node
  const { rules, nowMs } = facts
  const fresh = ailing.filter((type) => record.ailing?.includes(type) !== true)
  const isHealthy = isReady && fresh.length === 0
  const healthySinceMs = Date.parse(record.healthySince ?? '')
  if (isHealthy && nowMs - healthySinceMs >= rules.settleSeconds * 1000) {
    // Another reboot would change nothing, every day.
    if (record.bootID !== undefined && report?.rebootRequired === true)
      return failed(node, record, facts, `it still requires a reboot after it has restarted`)
    return ended(node, record, facts, 'Done', undefined)
  }
  if (isOver(record, rules.healthSeconds, facts) && !isHealthy) {
    const what = isReady ? fresh.join(', ') : 'it is not Ready'
    return failed(node, record, facts, `it is not healthy ${rules.healthSeconds} s after its maintenance: ${what}`)
  }
  if (isHealthy === Number.isFinite(healthySinceMs)) return undefined
  const { healthySince: _, ...rest } = record
  return { node: name, before: record, record: isHealthy ? { ...rest, healthySince: rfc3339(nowMs) } : rest }
}

/** Once an operator has looked at it and resumed, the node has its pods again. */
function failedStep(node: MaintenanceNode, record: MaintenanceRecord, facts: StepFacts): NodeStep | undefined {
  if (sinceMsOf(record) > facts.resumedMs) return undefined
  return ended(node, record, facts, 'Abandoned', record.reason ?? 'it failed')
}

function entered(
  { name: node }: MaintenanceNode,
  before: MaintenanceRecord,
  { nowMs }: StepFacts,
  phase: MaintenancePhase,
  message: string,
): NodeStep {
  const { id, ailing } = before
  return {
    node,
    before,
    record: { id, phase, since: rfc3339(nowMs), ...keptBoot(before), ...(ailing && { ailing }) },
    message,
  }
}

function keptBoot({ bootID, requestedAt }: MaintenanceRecord): Pick<MaintenanceRecord, 'bootID' | 'requestedAt'> {
  return { ...(bootID !== undefined && { bootID }), ...(requestedAt !== undefined && { requestedAt }) }
}

const longestReason = 400

/** A machine that failed after it was drained stays cordoned: it has nothing to lose, and may not be fit for pods. */
function failed(
  { name: node }: MaintenanceNode,
  before: MaintenanceRecord,
  { nowMs }: StepFacts,
  because: string,
  cordon?: 'give',
): NodeStep {
  const reason = because.slice(0, longestReason)
  const record = { id: before.id, phase: 'Failed', since: rfc3339(nowMs), reason } as const
  return { node, before, record, ...(cordon && { cordon }), message: `Its maintenance failed: ${reason}` }
}

function ended(
  { name: node }: MaintenanceNode,
  before: MaintenanceRecord,
  { nowMs }: StepFacts,
  phase: 'Done' | 'Abandoned' | 'Postponed',
  reason: string | undefined,
): NodeStep {
  // Its next turn is counted from its failure, not from when somebody looked at it.
  const since = phase === 'Abandoned' ? before.since : rfc3339(nowMs)
  const record = { id: before.id, phase, since, ...(reason !== undefined && { reason }) }
  const message = phase === 'Done' ? 'Its maintenance is done' : `Its maintenance ends: ${reason}`
  return { node, before, record, cordon: 'give', message }
}

function isOver(record: MaintenanceRecord, seconds: number, { nowMs }: StepFacts): boolean {
  return nowMs - sinceMsOf(record) >= seconds * 1000
}
