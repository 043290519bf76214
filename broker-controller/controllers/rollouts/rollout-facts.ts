/** The nodes of a rollout, and the progress of each of them. */
import type { RolloutRules } from './rollout-rules.ts'

/** `digest`: SHA-256 of its release.json. `floor`: least sequence of a version that it can follow. */
export type FleetRelease = {
  readonly version: string
  readonly sequence: number
  readonly digest: string
  readonly floor: number
}

/** What became of a release on a node. `waiting`: for its window, for bytes, or for another attempt. */
export type UpdateOutcome = 'waiting' | 'trial' | 'committed' | 'rolledBack' | 'blocked'

export type RolloutNode = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** Link and zone; empty if it has none. */
  readonly link: string
  readonly zone: string
  /** That of the committed version. Undefined: its agent does not update itself. */
  readonly sequence: number | undefined
  readonly isConnected: boolean
  /** Since when it has been away without a goodbye; undefined: it is there, or announced that it leaves. */
  readonly lostSinceMs: number | undefined
  /** A controller runs on it. It is the last of its ring. */
  readonly isController: boolean
  /** It took releases back, and gets none before this time. */
  readonly penaltyUntilMs: number
  /** The release that it may take, or took last. */
  readonly admitted: { readonly digest: string; readonly sequence: number; readonly atMs: number } | undefined
  /** What it last reported of a release, and since when. */
  readonly report: { readonly digest: string; readonly outcome: UpdateOutcome; readonly atMs: number } | undefined
}

/**
 * `idle`: it may not take the release yet. `admitted`: it may, and has not begun. `trial`: it runs it on trial. `blocked`: it cannot
 * take it, for a reason of its own. `unable`: its agent does not update itself, or no release can follow its version.
 */
export type NodeProgress =
  | { readonly is: 'idle' | 'admitted' | 'trial' | 'committed' | 'blocked' | 'unable' }
  | { readonly is: 'failed'; readonly atMs: number; readonly how: 'took it back' | 'is away since it took it' }

/** `step`: the release that the node takes next on its way to `target`. */
export function rolloutProgress(
  node: RolloutNode,
  target: FleetRelease,
  step: FleetRelease | undefined,
  rules: Pick<RolloutRules, 'lostSeconds' | 'watchSeconds'>,
  nowMs: number,
): NodeProgress {
  const { sequence, admitted, report } = node
  if (sequence === undefined) return { is: 'unable' }
  const own = report !== undefined && report.digest === admitted?.digest ? report : undefined
  const lostAtMs = lostAtMsOf(node, target, own, rules)
  if (lostAtMs <= nowMs) return { is: 'failed', atMs: lostAtMs, how: 'is away since it took it' }
  if (own?.outcome === 'trial') return { is: 'trial' }
  if (sequence >= target.sequence) return { is: 'committed' }
  if (step === undefined) return { is: 'unable' }
  // It was admitted by an earlier rollout, or to a step that is behind it.
  if (admitted?.digest !== step.digest) return { is: 'idle' }
  if (own?.outcome === 'rolledBack') return { is: 'failed', atMs: own.atMs, how: 'took it back' }
  return { is: own?.outcome === 'blocked' ? 'blocked' : 'admitted' }
}

/** When the node counts as lost by the release: it went away on trial, or soon after. Infinity: it does not. */
function lostAtMsOf(
  { lostSinceMs, admitted }: RolloutNode,
  target: FleetRelease,
  own: RolloutNode['report'],
  { lostSeconds, watchSeconds }: Pick<RolloutRules, 'lostSeconds' | 'watchSeconds'>,
): number {
  if (lostSinceMs === undefined || own === undefined) return Number.POSITIVE_INFINITY
  const isWatched =
    own.outcome === 'committed' && admitted?.digest === target.digest && lostSinceMs <= own.atMs + watchSeconds * 1000
  return own.outcome === 'trial' || isWatched ? lostSinceMs + lostSeconds * 1000 : Number.POSITIVE_INFINITY
}

/**
 * The release that a node takes next on its way to `target`: the newest of `releases` that can follow its version. Undefined: there is
 * none, and the package must be upgraded.
 */
export function nextStep(
  sequence: number,
  target: FleetRelease,
  releases: readonly FleetRelease[],
): FleetRelease | undefined {
  if (target.floor <= sequence) return target
  let best: FleetRelease | undefined
  for (const one of releases)
    if (one.floor <= sequence && one.sequence > sequence && one.sequence < target.sequence)
      if (best === undefined || one.sequence > best.sequence) best = one
  return best
}

/** What the controller keeps of the releases that a node took back one after the other; a committed one ends it. */
export type NodeFailures = { readonly failures: number; readonly failedMs: number }

export function penaltyUntilMs({ failures, failedMs }: NodeFailures, { penaltySeconds }: RolloutRules): number {
  return failures <= 0 ? 0 : failedMs + Math.min(failures, mostPenalties) * penaltySeconds * 1000
}

const mostPenalties = 7
