/** A rule that holds at every moment of a world: a pure function from what is remembered and the next fact. */
import type { TimedFact } from '../story/facts.ts'

export type FactJudgement<S> = { readonly state: S; readonly violation?: string }

export type Invariant<S> = {
  readonly name: string
  readonly initial: S
  readonly next: (state: S, fact: TimedFact) => FactJudgement<S>
  /** The fact puts the rule to the test. undefined: every fact does. */
  readonly meets?: (fact: TimedFact) => boolean
}

/** Gives the violation that the fact is. */
export type Judge = (fact: TimedFact) => string | undefined

/** Remembers the state of one invariant. */
export function judgeOf<S>({ name, initial, next }: Invariant<S>): Judge {
  let state = initial
  return (fact) => {
    const judgement = next(state, fact)
    state = judgement.state
    return judgement.violation === undefined ? undefined : `${name}: ${judgement.violation}`
  }
}

/** The map with this entry. Maps of invariants are small. */
export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value)
}

export function withoutEntry<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}
