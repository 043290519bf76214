/**
 * Judges a version on trial by what is seen of it from outside: by systemd, Docker and the controller, not by what it reports of
 * itself. Decides only; each look follows the earlier ones.
 */
import type { TrialVerdict } from './next-start.ts'
import type { ProgramUnit } from './program-unit.ts'
import type { SeenBefore } from './update-state.ts'

/** What was seen of the program at one moment. */
export type TrialLook = {
  /** By a clock that never jumps. */
  readonly nowMs: number
  readonly unit: ProgramUnit
  /** Containers of pods that run. Undefined: Docker did not answer. */
  readonly containers: ReadonlySet<string> | undefined
  /** As in `SeenBefore`. */
  readonly epoch: string
  /** `sees`: the node has this version and a current lease there. `misses`: it has not. `away`: the controller did not answer. */
  readonly controller: 'sees' | 'misses' | 'away'
}

/** Neither for the version nor against it: such a trial ends without a verdict. */
export const nothingSeen: Omit<TrialLook, 'nowMs'> = {
  unit: { state: 'starting', invocation: '', exitStatus: 0 },
  containers: undefined,
  epoch: '',
  controller: 'away',
}

export type TrialRules = SeenBefore & {
  /** How long it must be healthy without interruption. */
  readonly trialMs: number
  /** How long the controller may miss a version that runs. */
  readonly deafMs: number
  /** After this time the trial ends in any case. */
  readonly longestMs: number
}

export type TrialHistory = {
  readonly beganMs: number
  readonly invocation: string
  readonly runsSinceMs: number | undefined
  readonly missedSinceMs: number | undefined
}

export type JudgedTrial = { readonly history: TrialHistory; readonly verdict: Omit<TrialVerdict, 'digest'> | undefined }

export function judgeTrial(before: TrialHistory | undefined, look: TrialLook, rules: TrialRules): JudgedTrial {
  const history = withLook(before, look)
  return { history, verdict: verdictOn(history, look, rules) }
}

function withLook(before: TrialHistory | undefined, { nowMs, unit, controller }: TrialLook): TrialHistory {
  const isRunning = unit.state === 'running'
  const isSame = before?.invocation === unit.invocation
  const runsSinceMs = isRunning ? ((isSame ? before?.runsSinceMs : undefined) ?? nowMs) : undefined
  // While it starts nothing is expected of it; a controller that is away has no evidence against it.
  const missedSinceMs =
    isRunning && controller === 'misses' ? ((isSame ? before?.missedSinceMs : undefined) ?? nowMs) : undefined
  return { beganMs: before?.beganMs ?? nowMs, invocation: unit.invocation, runsSinceMs, missedSinceMs }
}

function verdictOn(
  { beganMs, runsSinceMs, missedSinceMs }: TrialHistory,
  { nowMs, unit, containers, epoch, controller }: TrialLook,
  { trialMs, deafMs, longestMs, wasConnected, ...before }: TrialRules,
): Omit<TrialVerdict, 'digest'> | undefined {
  if (unit.state === 'failed')
    return reject(`It ended with status ${unit.exitStatus}, after which it is not started again`)
  // A boot, or a start of Docker, ends all containers, whichever version runs.
  const earlier = before.epoch === epoch ? before.containers : []
  const lost = earlier.filter((id) => containers?.has(id) === false).length
  // Pods end and are deleted during a trial, too: only a loss of most of them is one of the version.
  if (lost > 0 && lost * 2 > earlier.length) return reject(`${lost} of ${earlier.length} containers no longer run`)
  if (wasConnected && missedSinceMs !== undefined && nowMs - missedSinceMs >= deafMs)
    return reject(`It runs, and the controller has had no lease of it for ${seconds(deafMs)} s`)
  const isProven = !wasConnected || controller === 'sees'
  if (runsSinceMs !== undefined && nowMs - runsSinceMs >= trialMs && isProven && containers !== undefined)
    return {
      outcome: 'commit',
      reason: wasConnected ? 'It runs, and the controller sees it' : 'It runs; the machine had no controller before',
    }
  if (nowMs - beganMs < longestMs) return undefined
  const isAway = runsSinceMs !== undefined && wasConnected && controller === 'away'
  const obstacle = obstacleTo({ unit, containers }, isAway)
  return obstacle === undefined ? reject(`It was not healthy within ${seconds(longestMs)} s`) : inconclusive(obstacle)
}

/** Why a trial shows nothing about the version. */
function obstacleTo({ unit, containers }: Pick<TrialLook, 'unit' | 'containers'>, isAway: boolean): string | undefined {
  if (unit.state === 'stopped') return 'It was stopped by hand'
  if (containers === undefined) return 'Docker does not answer'
  return isAway ? 'The controller is away' : undefined
}

function reject(reason: string) {
  return { outcome: 'reject', reason } as const
}

function inconclusive(reason: string) {
  return { outcome: 'inconclusive', reason } as const
}

function seconds(ms: number): number {
  return Math.round(ms / 1000)
}
