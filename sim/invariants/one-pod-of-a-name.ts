/** At most one pod of a StatefulSet's name runs in the fleet, unless a person has forced one out of the way. */
import type { ContainerName } from '../story/facts.ts'
import { type Invariant, withEntry, withoutEntry } from './invariant.ts'

type Running = {
  /** Containers by id. */
  readonly running: ReadonlyMap<string, ContainerName>
  /** The uids of the pods that a person has deleted without waiting for their nodes. */
  readonly forced: ReadonlySet<string>
}

/** `isSingle`: of the names of pods that are of a StatefulSet. */
export function onePodOfAName(isSingle: (pod: string) => boolean): Invariant<Running> {
  return {
    name: 'at most one pod of the name of a StatefulSet runs',
    initial: { running: new Map(), forced: new Set() },
    meets: (fact) => fact.kind === 'started' && isSingle(fact.pod),
    next(before, fact) {
      const { running, forced } = before
      if (fact.kind === 'forced') return { state: { running, forced: new Set(forced).add(fact.podUID) } }
      if (fact.kind === 'ended') return { state: { forced, running: withoutEntry(running, fact.id) } }
      if (fact.kind !== 'started' || !isSingle(fact.pod)) return { state: before }
      const other = [...running.values()].find(
        ({ pod, podUID }) => pod === fact.pod && podUID !== fact.podUID && !forced.has(podUID),
      )
      const state = { forced, running: withEntry(running, fact.id, fact) }
      if (other === undefined || forced.has(fact.podUID)) return { state }
      return {
        state,
        violation: `${fact.pod} starts on ${fact.node} (${fact.podUID}) and runs on ${other.node} (${other.podUID})`,
      }
    },
  }
}
