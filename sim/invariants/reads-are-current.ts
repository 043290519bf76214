/** A client reads what it was answered before, also after a crash of the controller: an answered write is there, a deleted object is not. */
import type { ObjectName } from '../story/facts.ts'
import type { Invariant } from './invariant.ts'

/** The version of the last answered write of each object; `gone`: its deletion was answered. */
type Answered = Map<string, number | 'gone'>

const keyText = ({ resource, namespace, name }: ObjectName) => `${resource}/${namespace}/${name}`

export function readsAreCurrent(): Invariant<Answered> {
  return {
    name: 'a client reads what it has written',
    initial: new Map(),
    meets: ({ kind }) => kind === 'read',
    next(answered, fact) {
      if (fact.kind === 'answered') return { state: answered.set(keyText(fact), fact.version) }
      if (fact.kind === 'removed') return { state: answered.set(keyText(fact), 'gone') }
      if (fact.kind !== 'read') return { state: answered }
      const last = answered.get(keyText(fact))
      const violation = last === undefined ? undefined : problemOf(last, fact.version)
      return { state: answered, ...(violation !== undefined && { violation: `${keyText(fact)} ${violation}` }) }
    },
  }
}

function problemOf(last: number | 'gone', read: number | undefined): string | undefined {
  if (last === 'gone') return read === undefined ? undefined : `was deleted, and is read in version ${read}`
  if (read === undefined) return `was written in version ${last}, and is not there`
  return read < last ? `was written in version ${last}, and is read in version ${read}` : undefined
}
