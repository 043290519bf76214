/**
 * A container that has completed does not run again, where its pod does not restart it. Its end is in the engine until a person removes it, and
 * in the checkpoint of the agent: where the agent has had no time to save it, it is lost with the container. Both are lost where the system of the
 * machine is installed again. A node forgets a pod that is deleted; a backup that is restored after that may have it as one that has not run yet.
 */
import type { TimedFact } from '../story/facts.ts'
import { type Invariant, withEntry, withoutEntry } from './invariant.ts'

type Completed = {
  /** When each container completed, by the uid of its pod and its name. */
  readonly endedMs: ReadonlyMap<string, { readonly pod: string; readonly node: string; readonly atMs: number }>
  /** The names of pods that were deleted since the beginning or the last restore; they have random ends. */
  readonly deleted: ReadonlySet<string>
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
    initial: { endedMs: new Map(), savesSinceMs: new Map(), deleted: new Set() },
    meets: (fact) => fact.kind === 'ended' && fact.exitCode === 0 && ends(fact.pod),
    next(state, fact) {
      switch (fact.kind) {
        case 'health':
          return { state: { ...state, savesSinceMs: savesAfter(state.savesSinceMs, fact) } }
        case 'reinstalled':
        case 'fault':
          return { state: { ...state, endedMs: endsAfter(state.endedMs, fact) } }
        case 'stored':
          return { state: isDeletedPod(fact) ? { ...state, deleted: new Set(state.deleted).add(fact.name) } : state }
        case 'restored': {
          const endedMs = new Map([...state.endedMs].filter(([, { pod }]) => !state.deleted.has(pod)))
          return { state: { ...state, endedMs, deleted: new Set() } }
        }
        case 'ended': {
          const isCompleted = fact.exitCode === 0 && ends(fact.pod)
          return { state: isCompleted ? { ...state, endedMs: withEntry(state.endedMs, keyOf(fact), fact) } : state }
        }
        case 'forgotten':
          return {
            state: isSaved(state, fact) ? state : { ...state, endedMs: withoutEntry(state.endedMs, keyOf(fact)) },
          }
        case 'started': {
          if (!state.endedMs.has(keyOf(fact))) return { state }
          return { state, violation: `${fact.container} of ${fact.pod} (${fact.podUID}) starts again on ${fact.node}` }
        }
        default:
          return { state }
      }
    },
  }
}

type FactOf<Kind extends TimedFact['kind']> = Extract<TimedFact, { kind: Kind }>

function keyOf({ podUID, container }: { readonly podUID: string; readonly container: string }): string {
  return `${podUID}/${container}`
}

function isDeletedPod({ resource, body }: FactOf<'stored'>): boolean {
  return resource === 'pods' && body === undefined
}

function savesAfter(since: Completed['savesSinceMs'], { node, canSave, atMs }: FactOf<'health'>) {
  return canSave ? withEntry(since, node, since.get(node) ?? atMs) : withoutEntry(since, node)
}

/** The agent had the time to save the end before the engine forgot it. */
function isSaved({ endedMs, savesSinceMs }: Completed, fact: FactOf<'forgotten'>): boolean {
  const ended = endedMs.get(keyOf(fact))
  return ended === undefined || fact.atMs - Math.max(ended.atMs, savesSinceMs.get(fact.node) ?? fact.atMs) >= savedMs
}

/** A fault may take ends with it. */
function endsAfter(endedMs: Completed['endedMs'], fact: FactOf<'reinstalled' | 'fault'>): Completed['endedMs'] {
  if (fact.kind === 'reinstalled') return new Map([...endedMs].filter(([, { node }]) => node !== fact.node))
  if (!endsContainers(fact.what)) return endedMs
  const node = fact.target.replace('Docker of ', '')
  return new Map([...endedMs].filter(([, end]) => end.node !== node || fact.atMs - end.atMs > togetherMs))
}

function endsContainers(fault: string): boolean {
  return fault === 'the power is cut' || fault === 'Docker dies with its containers'
}
