/**
 * The neighbours on one node after pods came to it or left it, by the counts of those before: a trial of preemption compares no terms and
 * counts no other node again (as AddPod and RemovePod of kube-scheduler's plugins).
 */
import type { Pod } from '../../api/pod.ts'
import { addTo } from './counts.ts'
import type { Domains, Neighbours, PodRelations } from './inter-pod-affinity.ts'
import type { NodeAllocation } from './node-usage.ts'

type CountsByKey = Map<string, Map<string, number>>

/** They stay as they are while pods are moved. */
export function copiedNeighbours({ near, far, unwanted, nearTotals, matchesItself }: Neighbours) {
  const copied = (domains: Domains): CountsByKey => {
    return new Map([...domains].map(([topologyKey, counts]) => [topologyKey, new Map(counts)]))
  }
  return {
    ...{ near: copied(near), far: copied(far), unwanted: copied(unwanted) },
    ...{ nearTotals: new Map(nearTotals), matchesItself },
  }
}

/** What of them decides about the node. It is not changed by pods that are moved. */
export function neighboursHere(neighbours: Neighbours | undefined, { labels }: NodeAllocation): Neighbours | undefined {
  if (neighbours === undefined) return undefined
  const here = (domains: Domains) => {
    const counts = new Map<string, ReadonlyMap<string, number>>()
    for (const [topologyKey, all] of domains) {
      const value = labels[topologyKey]
      const count = value === undefined ? undefined : all.get(value)
      counts.set(topologyKey, value === undefined || count === undefined ? noCounts : new Map([[value, count]]))
    }
    return counts
  }
  return {
    ...neighbours,
    ...{ near: here(neighbours.near), far: here(neighbours.far), unwanted: here(neighbours.unwanted) },
  }
}

const noCounts: ReadonlyMap<string, number> = new Map()

/** `here`: those of the node before; `change`: 1 for pods that came to it, -1 for pods that left it. */
export function neighboursAfter(
  here: Neighbours | undefined,
  others: Iterable<Pod>,
  change: 1 | -1,
  { labels }: NodeAllocation,
  relations: PodRelations,
): Neighbours {
  const before = here ?? noNeighbours
  const { near, far, unwanted, nearTotals } = copiedNeighbours(before)
  const add = (domains: CountsByKey, topologyKey: string) => {
    const counts = domains.get(topologyKey) ?? new Map<string, number>()
    domains.set(topologyKey, counts)
    addTo(counts, labels[topologyKey], change)
  }
  const addFriend = (topologyKey: string) => {
    add(near, topologyKey)
    if (labels[topologyKey] !== undefined) addTo(nearTotals, topologyKey, change)
  }
  for (const other of others) {
    if (near.size > 0 && relations.isFriend(other)) for (const topologyKey of near.keys()) addFriend(topologyKey)
    for (const topologyKey of relations.avoids(other)) add(far, topologyKey)
    for (const topologyKey of relations.isAvoidedBy(other)) add(unwanted, topologyKey)
  }
  return { near, far, unwanted, nearTotals, matchesItself: before.matchesItself }
}

const noNeighbours: Neighbours = {
  ...{ near: new Map(), far: new Map(), unwanted: new Map() },
  ...{ nearTotals: new Map(), matchesItself: true },
}
