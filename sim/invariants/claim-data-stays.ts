/** No data of a claim goes that was not asked for: to the trash when a person deletes the claim, and from there not within days. */
import { type Invariant, withEntry } from './invariant.ts'

type Known = {
  /** The uid of the claim that had it last, by data. */
  readonly owners: ReadonlyMap<string, string>
  /** The uids of the claims whose deletion a person has asked for. */
  readonly asked: ReadonlySet<string>
}

export const claimDataStays: Invariant<Known> = {
  name: 'no data of a claim goes that was not asked for',
  initial: { owners: new Map(), asked: new Set() },
  meets: (fact) => fact.kind === 'data' && fact.place !== 'volume',
  next(known, fact) {
    const { owners, asked } = known
    if (fact.kind === 'used') return { state: { asked, owners: withEntry(owners, fact.data, fact.claimUID) } }
    if (fact.kind === 'asked') return { state: { owners, asked: new Set(asked).add(fact.claimUID) } }
    if (fact.kind !== 'data' || fact.place === 'volume') return { state: known }
    const owner = owners.get(fact.data) ?? ''
    if (fact.place === 'trash' && asked.has(owner)) return { state: known }
    const where = fact.place === 'trash' ? 'goes to the trash' : 'is gone'
    return { state: known, violation: `${fact.data} on ${fact.node} ${where}, and its claim ${owner} was not deleted` }
  },
}
