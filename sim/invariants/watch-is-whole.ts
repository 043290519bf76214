/** A watch neither misses nor repeats: after a list, it gives each stored change of its kind, in order. */
import type { Invariant } from './invariant.ts'

type Watched = {
  /** Versions of the stored changes, ascending, by kind. */
  readonly stored: Map<string, number[]>
  /** The version that the client has seen last, by kind. */
  readonly seen: Map<string, number>
}

export function watchIsWhole(): Invariant<Watched> {
  return {
    name: 'a watch neither misses nor repeats',
    initial: { stored: new Map(), seen: new Map() },
    meets: ({ kind }) => kind === 'watched',
    next(state, fact) {
      const { stored, seen } = state
      if (fact.kind === 'stored')
        stored.set(fact.resource, [...(stored.get(fact.resource) ?? []), fact.version].slice(-mostKept))
      if (fact.kind === 'listed') seen.set(fact.resource, fact.version)
      if (fact.kind !== 'watched') return { state }
      const last = seen.get(fact.resource) ?? 0
      seen.set(fact.resource, fact.version)
      if (fact.version <= last) return { state, violation: `${fact.resource}: version ${fact.version} follows ${last}` }
      const missed = (stored.get(fact.resource) ?? []).find((version) => version > last && version < fact.version)
      if (missed === undefined) return { state }
      return { state, violation: `${fact.resource}: version ${missed} is missing between ${last} and ${fact.version}` }
    },
  }
}

/** A client is seconds behind. */
const mostKept = 2_000
