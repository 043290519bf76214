/** At most one pod of a StatefulSet's name runs in the fleet. */
import type { ContainerName } from '../story/facts.ts'
import { type Invariant, withEntry, withoutEntry } from './invariant.ts'

/** Running containers by id. */
type Running = ReadonlyMap<string, ContainerName>

/** `isSingle`: of the names of pods that are of a StatefulSet. */
export function onePodOfAName(isSingle: (pod: string) => boolean): Invariant<Running> {
  return {
    name: 'at most one pod of the name of a StatefulSet runs',
    initial: new Map(),
    meets: (fact) => fact.kind === 'started' && isSingle(fact.pod),
    next(running, fact) {
      if (fact.kind === 'ended') return { state: withoutEntry(running, fact.id) }
      if (fact.kind !== 'started' || !isSingle(fact.pod)) return { state: running }
      const other = [...running.values()].find(({ pod, podUID }) => pod === fact.pod && podUID !== fact.podUID)
      const state = withEntry(running, fact.id, fact)
      if (other === undefined) return { state }
      return {
        state,
        violation: `${fact.pod} starts on ${fact.node} (${fact.podUID}) and runs on ${other.node} (${other.podUID})`,
      }
    },
  }
}
