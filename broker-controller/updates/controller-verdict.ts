/**
 * Judges a version of the controller on trial by what others see of it: systemd, a client of its API, and the leases of its nodes. Decides
 * only; each look follows the earlier ones.
 */
import type { TrialVerdict } from '../../daemon/updates/next-start.ts'
import type { ProgramUnit } from '../../daemon/updates/program-unit.ts'

export type ControllerLook = {
  /** By a clock that never jumps. */
  readonly nowMs: number
  readonly unit: ProgramUnit
  /** /readyz is ok, and a Lease that was written is read. */
  readonly works: boolean
  /** The names of nodes with a current lease. Undefined: the API did not answer. */
  readonly connectedNodes: readonly string[] | undefined
}

/** Neither for the version nor against it. */
export const nothingSeenOfController: Omit<ControllerLook, 'nowMs'> = {
  unit: { state: 'starting', invocation: '', exitStatus: 0 },
  works: false,
  connectedNodes: undefined,
}

export type ControllerTrialRules = {
  /** How long it must be healthy without interruption. */
  readonly trialMs: number
  /** How long it may run without working. */
  readonly idleMs: number
  /** After this time the trial ends in any case. */
  readonly longestMs: number
  /** Before the trial: whether the controller worked, and the names of the nodes that were connected. */
  readonly wasWorking: boolean
  readonly connectedNodes: readonly string[]
}

export type ControllerTrialHistory = {
  readonly beganMs: number
  readonly invocation: string
  readonly healthySinceMs: number | undefined
  readonly idleSinceMs: number | undefined
}

/** Nodes go away for reasons of their own, too. */
const returningPercent = 80

type Judged = {
  readonly history: ControllerTrialHistory
  readonly verdict: Omit<TrialVerdict, 'digest'> | undefined
}

export function judgeController(
  before: ControllerTrialHistory | undefined,
  look: ControllerLook,
  rules: ControllerTrialRules,
): Judged {
  const history = withLook(before, look, rules)
  return { history, verdict: verdictOn(history, look, rules) }
}

function withLook(
  before: ControllerTrialHistory | undefined,
  { nowMs, unit, works, connectedNodes }: ControllerLook,
  rules: ControllerTrialRules,
): ControllerTrialHistory {
  const same = before?.invocation === unit.invocation ? before : undefined
  const isRunning = unit.state === 'running'
  const isHealthy = isRunning && works && hasNodes(connectedNodes, rules.connectedNodes)
  return {
    beganMs: before?.beganMs ?? nowMs,
    invocation: unit.invocation,
    healthySinceMs: isHealthy ? (same?.healthySinceMs ?? nowMs) : undefined,
    idleSinceMs: isRunning && !works ? (same?.idleSinceMs ?? nowMs) : undefined,
  }
}

function hasNodes(connected: readonly string[] | undefined, before: readonly string[]): boolean {
  return connected !== undefined && returned(connected, before) * 100 >= before.length * returningPercent
}

/** By name: nodes that have joined since do not stand for those that are lost. */
function returned(connected: readonly string[], before: readonly string[]): number {
  const names = new Set(connected)
  return before.filter((name) => names.has(name)).length
}

function verdictOn(
  { beganMs, healthySinceMs, idleSinceMs }: ControllerTrialHistory,
  { nowMs, unit, works, connectedNodes }: ControllerLook,
  { trialMs, idleMs, longestMs, wasWorking, connectedNodes: before }: ControllerTrialRules,
): Omit<TrialVerdict, 'digest'> | undefined {
  const again = returned(connectedNodes ?? [], before)
  if (unit.state === 'failed')
    return { outcome: 'reject', reason: `It ended with status ${unit.exitStatus}, after which it is not started again` }
  if (healthySinceMs !== undefined && nowMs - healthySinceMs >= trialMs)
    return {
      outcome: 'commit',
      reason: `It works, and of ${before.length} nodes that were connected before, ${again} are again`,
    }
  if (wasWorking && idleSinceMs !== undefined && nowMs - idleSinceMs >= idleMs)
    return { outcome: 'reject', reason: `It runs, and its API has not worked for ${Math.round(idleMs / 1000)} s` }
  if (nowMs - beganMs < longestMs) return undefined
  if (unit.state === 'stopped') return { outcome: 'inconclusive', reason: 'It was stopped by hand' }
  // What it needs, such as etcd, may be away as it was before.
  if (!works && !wasWorking)
    return { outcome: 'inconclusive', reason: 'It did not work before the trial, and does not now' }
  const seconds = Math.round(longestMs / 1000)
  if (works && connectedNodes !== undefined)
    return {
      outcome: 'reject',
      reason: `Of ${before.length} nodes that were connected before, ${again} were again after ${seconds} s`,
    }
  return { outcome: 'reject', reason: `It was not healthy within ${seconds} s` }
}
