/** Two machines never write one ReadWriteOnce claim, unless a person has forced a pod out of the way. */
import { type Invariant, withEntry, withoutEntry } from './invariant.ts'

type Writer = { readonly node: string; readonly pod: string; readonly podUID: string; readonly claimUID: string }
type Writers = {
  /** Running containers by id. */
  readonly running: ReadonlyMap<string, Writer>
  /** The uids of the pods that a person has deleted without waiting for their nodes. */
  readonly forced: ReadonlySet<string>
}

export const oneMachineWrites: Invariant<Writers> = {
  name: 'two machines never write one ReadWriteOnce claim',
  initial: { running: new Map(), forced: new Set() },
  meets: ({ kind }) => kind === 'used',
  next(state, fact) {
    const { running, forced } = state
    if (fact.kind === 'forced') return { state: { running, forced: new Set(forced).add(fact.podUID) } }
    if (fact.kind === 'ended' && running.has(fact.id))
      return { state: { forced, running: withoutEntry(running, fact.id) } }
    if (fact.kind !== 'used') return { state }
    const next = { forced, running: withEntry(running, fact.id, fact) }
    const other = [...running.values()].find(
      ({ node, claimUID, podUID }) => claimUID === fact.claimUID && node !== fact.node && !forced.has(podUID),
    )
    if (other === undefined || forced.has(fact.podUID)) return { state: next }
    const claim = `${fact.claim} (${fact.claimUID})`
    return {
      state: next,
      violation: `${claim} is written by ${fact.pod} on ${fact.node} and by ${other.pod} on ${other.node}`,
    }
  },
}
