/** No answered write is lost: what a client was answered is on the disk of the store by then. */
import type { ObjectName } from '../story/facts.ts'
import type { Invariant } from './invariant.ts'

/** The latest version on the disk, by object. */
type Stored = ReadonlyMap<string, number>

const keyText = ({ resource, namespace, name }: ObjectName) => `${resource}/${namespace}/${name}`

export function answeredIsStored(): Invariant<Map<string, number>> {
  return {
    name: 'no answered write is lost',
    initial: new Map(),
    meets: ({ kind }) => kind === 'answered',
    next(stored, fact) {
      // One map that grows: each write of the fleet is a fact.
      if (fact.kind === 'stored') return { state: stored.set(keyText(fact), fact.version) }
      if (fact.kind !== 'answered' || isStored(stored, fact)) return { state: stored }
      return {
        state: stored,
        violation: `${keyText(fact)} was answered with version ${fact.version}, and is not on the disk`,
      }
    },
  }
}

function isStored(stored: Stored, fact: ObjectName & { readonly version: number }): boolean {
  return (stored.get(keyText(fact)) ?? 0) >= fact.version
}
