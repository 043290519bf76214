/**
 * How a release goes on through a fleet: which nodes may take it now, which may no longer, and why it pauses. Decides only; all that
 * it remembers is `RolloutState`, so that another controller continues where this one ended.
 */
import { freePlaces } from './node-places.ts'
import type { ResumedState } from './operator-resume.ts'
import { type RingNodes, ringsOf } from './rings.ts'
import { type FleetRelease, type NodeProgress, nextStep, type RolloutNode, rolloutProgress } from './rollout-facts.ts'
import type { RolloutRules } from './rollout-rules.ts'

export type RolloutState = ResumedState & {
  /** Index of the ring that gets the release now; that of no ring when all have it. */
  readonly ring: number
  /** Since when its connected nodes have finished. */
  readonly soakSinceMs?: number
  /** Why nothing goes on until an operator resumes it. */
  readonly paused?: string
}

export const firstState: RolloutState = { ring: 0 }

export type RolloutFacts = {
  readonly target: FleetRelease
  /** All that the controller serves: a node that is too old for the target takes one between them first. */
  readonly releases: readonly FleetRelease[]
  readonly rules: RolloutRules
  readonly nodes: readonly RolloutNode[]
  /** Why no further node may take a release now. */
  readonly wait?: string | undefined
  readonly nowMs: number
}

export type Admission = { readonly node: string; readonly release: FleetRelease }

export type RolloutPlan = {
  readonly state: RolloutState
  /** Nodes that may take a release now. */
  readonly admit: readonly Admission[]
  /** Nodes that may not any longer, and have not begun. */
  readonly withdraw: readonly string[]
  /** When time alone changes the decision; undefined: never. */
  readonly dueMs: number | undefined
  readonly status: RolloutStatus
}

export type RingCounts = {
  readonly name: string
  readonly nodes: number
  readonly committed: number
  readonly failed: number
  /** Admitted or on trial. */
  readonly updating: number
}

export type RolloutStatus = {
  readonly phase: 'Progressing' | 'Soaking' | 'Waiting' | 'Paused' | 'Complete'
  readonly message: string
  readonly rings: readonly RingCounts[]
  /** Nodes of the rings so far that hold up no other: they are away, stalled, blocked or in the penalty box. */
  readonly stragglers: readonly string[]
}

type Member = {
  readonly node: RolloutNode
  /** The release that it takes next. */
  readonly step: FleetRelease | undefined
  readonly progress: NodeProgress
  /** Whether the ring waits for it. */
  readonly isOpen: boolean
}

type RingMembers = Omit<RingNodes, 'nodes'> & { readonly members: readonly Member[] }

export function nextRollout(before: RolloutState, facts: RolloutFacts): RolloutPlan {
  const { rules, nodes, target, wait, nowMs } = facts
  const rings = ringsOf(rules.rings, nodes, target, nowMs).map(
    ({ nodes: own, ...ring }): RingMembers => ({ ...ring, members: own.map((node) => memberOf(node, facts)) }),
  )
  const paused = before.paused ?? failureOf(rings, before, facts)
  if (paused !== undefined) return pausedPlan({ ...before, paused }, rings)
  const { state, ...rest } = advanced(before, rings, nowMs)
  const reached = rings.slice(0, state.ring + 1)
  const admit = wait === undefined ? admissions(reached, rings, rules) : []
  const admitted = new Set(admit.map(({ node }) => node))
  const stale = rings.flatMap(({ members }) => members.filter(isStale).map(({ node }) => node.name))
  return {
    state,
    admit,
    withdraw: stale.filter((name) => !admitted.has(name)),
    dueMs: dueOf(wait === undefined ? rest.dueMs : nowMs + waitMs, reached, facts),
    status: {
      ...(wait === undefined || rest.phase === 'Complete'
        ? { phase: rest.phase, message: rest.message }
        : { phase: 'Waiting', message: wait }),
      rings: rings.map(countsOf),
      stragglers: reached.flatMap(({ members }) => members.filter(isStraggler).map(({ node }) => node.name)),
    },
  }
}

/** What it waits for changes without a change of the fleet. */
const waitMs = 60_000

function memberOf(node: RolloutNode, { target, releases, rules, nowMs }: RolloutFacts): Member {
  const step = node.sequence === undefined ? undefined : nextStep(node.sequence, target, releases)
  const progress = rolloutProgress(node, target, step, rules, nowMs)
  return { node, step, progress, isOpen: isOpen(node, progress, rules, nowMs) }
}

/** It may take a release that this rollout does not want it to take now. */
function isStale({ node: { admitted, sequence = 0 }, progress }: Member): boolean {
  return progress.is === 'idle' && admitted !== undefined && admitted.sequence > sequence
}

/** A node that is away, or that waits for itself, holds up no ring. One that went away on trial does, until it counts as lost. */
function isOpen(node: RolloutNode, progress: NodeProgress, rules: RolloutRules, nowMs: number): boolean {
  const { isConnected, lostSinceMs, penaltyUntilMs, admitted } = node
  if (progress.is === 'trial') return isConnected || lostSinceMs !== undefined
  if (!isConnected) return false
  if (progress.is === 'idle') return penaltyUntilMs <= nowMs
  return progress.is === 'admitted' && nowMs < (admitted?.atMs ?? 0) + rules.stallSeconds * 1000
}

/**
 * Why the rollout must pause: the first ring with too many failures. Nodes on trial count as well: a broken release ends within a minute,
 * and a good one is committed after ten, so of those that have finished most have failed in the first minutes of any ring.
 */
function failureOf(
  rings: readonly RingMembers[],
  { resumedMs = Number.NEGATIVE_INFINITY }: RolloutState,
  { rules, target }: RolloutFacts,
): string | undefined {
  for (const { name, members } of rings) {
    const failures = failuresOf(members, resumedMs)
    const [failed, begun] = [failures.length, failures.length + begunIn(members)]
    const [first] = failures.sort((a, b) => a.atMs - b.atMs)
    if (first === undefined || failed < rules.failureCount || failed * 100 < rules.failurePercent * begun) continue
    return `${failed} of ${begun} nodes of ring ${name} failed with ${target.version}; first ${first.node}, which ${first.how}`
  }
  return undefined
}

type Failure = { readonly node: string; readonly how: string; readonly atMs: number }

/** Those before it was resumed do not count: a person has looked at them. */
function failuresOf(members: readonly Member[], resumedMs: number): Failure[] {
  return members.flatMap(({ node, progress }) =>
    progress.is === 'failed' && progress.atMs > resumedMs
      ? [{ node: node.name, how: progress.how, atMs: progress.atMs }]
      : [],
  )
}

/** How many run the release by this rollout: on trial, or for good. */
function begunIn(members: readonly Member[]): number {
  return members.filter(
    ({ node, progress }) => progress.is === 'trial' || (progress.is === 'committed' && node.admitted !== undefined),
  ).length
}

function pausedPlan(state: RolloutState, rings: readonly RingMembers[]): RolloutPlan {
  const all = rings.flatMap(({ members }) => members)
  return {
    state,
    admit: [],
    withdraw: all.filter((one) => one.progress.is === 'admitted' || isStale(one)).map(({ node }) => node.name),
    dueMs: undefined,
    status: {
      phase: 'Paused',
      message: state.paused ?? '',
      rings: rings.map(countsOf),
      stragglers: all.filter(isStraggler).map(({ node }) => node.name),
    },
  }
}

type Advance = Pick<RolloutStatus, 'phase' | 'message'> & {
  readonly state: RolloutState
  readonly dueMs: number | undefined
}

/** Goes on to the ring that is not through yet. A soak that has begun is not begun again by a node that comes back. */
function advanced(before: RolloutState, rings: readonly RingMembers[], nowMs: number): Advance {
  let { soakSinceMs, ...state } = before
  for (const [at, ring] of [...rings.entries()].slice(before.ring)) {
    const { name, members, soakSeconds } = ring
    state = { ...state, ring: at }
    const open = members.filter((one) => one.isOpen).length
    if (soakSinceMs === undefined && open > 0)
      return { phase: 'Progressing', message: `Ring ${name}: ${open} nodes to go`, state, dueMs: undefined }
    const isLast = at === rings.length - 1
    if (!isLast && soakSinceMs === undefined && !isProven(members, before))
      return { phase: 'Waiting', message: `Ring ${name}: no node can take the release`, state, dueMs: undefined }
    const sinceMs: number = soakSinceMs ?? nowMs
    const untilMs = sinceMs + soakSeconds * 1000
    if (!isLast && members.length > 0 && untilMs > nowMs)
      return {
        phase: 'Soaking',
        message: `Ring ${name} soaks`,
        state: { ...state, soakSinceMs: sinceMs },
        dueMs: untilMs,
      }
    soakSinceMs = undefined
  }
  return { phase: 'Complete', message: 'All nodes that can have the release have it', state, dueMs: undefined }
}

/** Whether a node of the ring shows that the release works, or none needs it. An operator who resumes it in spite of a failure vouches. */
function isProven(members: readonly Member[], { resumedMs = Number.NEGATIVE_INFINITY }: RolloutState): boolean {
  return (
    members.every(({ progress }) => progress.is === 'committed') ||
    members.some(({ node, progress }) =>
      progress.is === 'failed'
        ? progress.atMs <= resumedMs
        : progress.is === 'committed' && node.admitted !== undefined,
    )
  )
}

function isStraggler({ progress, isOpen }: Member): boolean {
  return !isOpen && progress.is !== 'committed' && progress.is !== 'failed'
}

/** As many as the limits leave, in the order of the rings. */
function admissions(
  reached: readonly RingMembers[],
  rings: readonly RingMembers[],
  rules: RolloutRules,
): readonly Admission[] {
  const free = freePlaces(rules)
  for (const { members } of rings)
    for (const { node, progress, isOpen } of members) if (isOpen && progress.is !== 'idle') free.take(node)
  const admitted: Admission[] = []
  for (const { members } of reached)
    for (const { node, step, progress, isOpen } of members) {
      if (!isOpen || progress.is !== 'idle' || step === undefined || !free.has(node)) continue
      free.take(node)
      admitted.push({ node: node.name, release: step })
    }
  return admitted
}

function countsOf({ name, members }: RingMembers): RingCounts {
  let [committed, failed, updating] = [0, 0, 0]
  for (const { progress } of members) {
    if (progress.is === 'committed') committed += 1
    else if (progress.is === 'failed') failed += 1
    else if (progress.is === 'admitted' || progress.is === 'trial') updating += 1
  }
  return { name, nodes: members.length, committed, failed, updating }
}

/** When this node stalls, counts as lost, or leaves the penalty box. */
function dueMsOf({ node, progress }: Member, { rules }: RolloutFacts): number | undefined {
  const { admitted, lostSinceMs, penaltyUntilMs } = node
  if (lostSinceMs !== undefined) return lostSinceMs + rules.lostSeconds * 1000
  if (progress.is === 'idle') return penaltyUntilMs
  return progress.is === 'admitted' && admitted !== undefined ? admitted.atMs + rules.stallSeconds * 1000 : undefined
}

/** The first time after now at which time alone changes the decision. */
function dueOf(ringMs: number | undefined, reached: readonly RingMembers[], facts: RolloutFacts): number | undefined {
  const later = (ms: number | undefined) => (ms !== undefined && ms > facts.nowMs ? ms : Number.POSITIVE_INFINITY)
  let least = later(ringMs)
  for (const { members } of reached) for (const one of members) least = Math.min(least, later(dueMsOf(one, facts)))
  return least === Number.POSITIVE_INFINITY ? undefined : least
}
