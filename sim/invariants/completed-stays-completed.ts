/**
 * A container that has completed does not run again, where its pod does not restart it. Its end is in the engine until a person removes it, and
 * in the checkpoint of the agent: where the agent has had no time to save it, it is lost with the container. Both are lost where the system of the
 * machine is installed again.
 */
import type { TimedFact } from '../story/facts.ts'
import { type Invariant, withEntry, withoutEntry } from './invariant.ts'

type Completed = {
  /** When each container completed, by the uid of its pod and its name. */
  readonly endedMs: ReadonlyMap<string, { readonly node: string; readonly atMs: number }>
  /** Since when each node can save the ends of containers. */
  readonly savesSinceMs: ReadonlyMap<string, number>
}

/** The agent has observed and saved an end within this time. */
const savedMs = 30_000
/**
 * An end so shortly before that of the engine, which its agent has not seen, may be by the signal of the engine: as `ended-with-sandbox.ts` of
 * the agent.
 */
const togetherMs = 10_000

/** `ends`: of the names of pods whose containers are not restarted after exit code 0. */
export function completedStaysCompleted(ends: (pod: string) => boolean): Invariant<Completed> {
  return {
    name: 'a completed container does not run again',
    initial: { endedMs: new Map(), savesSinceMs: new Map() },
    meets: (fact) => fact.kind === 'ended' && fact.exitCode === 0 && ends(fact.pod),
    next(state, fact) {
      const { endedMs, savesSinceMs } = state
      if (fact.kind === 'health') {
        const { node, canSave, atMs } = fact
        const next = canSave
          ? withEntry(savesSinceMs, node, savesSinceMs.get(node) ?? atMs)
          : withoutEntry(savesSinceMs, node)
        return { state: { endedMs, savesSinceMs: next } }
      }
      if (fact.kind === 'reinstalled' || fact.kind === 'fault')
        return { state: { endedMs: endsAfter(endedMs, fact), savesSinceMs } }
      if (fact.kind !== 'ended' && fact.kind !== 'started' && fact.kind !== 'forgotten') return { state }
      const key = `${fact.podUID}/${fact.container}`
      if (fact.kind === 'ended')
        return fact.exitCode === 0 && ends(fact.pod)
          ? { state: { endedMs: withEntry(endedMs, key, fact), savesSinceMs } }
          : { state }
      const atMs = endedMs.get(key)?.atMs
      if (atMs === undefined) return { state }
      if (fact.kind === 'forgotten') {
        const isSaved = fact.atMs - Math.max(atMs, savesSinceMs.get(fact.node) ?? fact.atMs) >= savedMs
        return { state: isSaved ? state : { endedMs: withoutEntry(endedMs, key), savesSinceMs } }
      }
      return { state, violation: `${fact.container} of ${fact.pod} (${fact.podUID}) starts again on ${fact.node}` }
    },
  }
}

/** A fault may take ends with it. */
function endsAfter(
  endedMs: Completed['endedMs'],
  fact: Extract<TimedFact, { kind: 'reinstalled' | 'fault' }>,
): Completed['endedMs'] {
  if (fact.kind === 'reinstalled') return new Map([...endedMs].filter(([, { node }]) => node !== fact.node))
  if (!endsContainers(fact.what)) return endedMs
  const node = fact.target.replace('Docker of ', '')
  return new Map([...endedMs].filter(([, end]) => end.node !== node || fact.atMs - end.atMs > togetherMs))
}

function endsContainers(fault: string): boolean {
  return fault === 'the power is cut' || fault === 'Docker dies with its containers'
}
