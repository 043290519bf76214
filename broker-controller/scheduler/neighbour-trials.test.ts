import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { aCluster } from '../testing/scheduling.ts'
import type { Domains, Neighbours, PodRelations } from './inter-pod-affinity.ts'
import { neighboursAfter, neighboursHere } from './neighbour-trials.ts'
import type { NodeAllocation } from './node-usage.ts'

const node = aCluster([{ name: 'a', labels: { zone: 'north', rack: '1' } }]).node('a') as NodeAllocation
const domains = (counts: { readonly [topologyKey: string]: { readonly [value: string]: number } }): Domains =>
  new Map(Object.entries(counts).map(([topologyKey, byValue]) => [topologyKey, new Map(Object.entries(byValue))]))
const neighbours = (given: Partial<Neighbours>): Neighbours => ({
  ...{ near: new Map(), nearTotals: new Map(), far: new Map(), unwanted: new Map(), matchesItself: false, ...given },
})
/** Friends are pods with this label; `db` keeps apart from the pod, and the pod from `web`. */
const relations: PodRelations = {
  isFriend: ({ metadata }) => metadata.labels?.['app'] === 'cache',
  avoids: ({ metadata }) => (metadata.labels?.['app'] === 'web' ? ['zone'] : []),
  isAvoidedBy: ({ metadata }) => (metadata.labels?.['app'] === 'db' ? ['rack', 'room'] : []),
}
const pods = (...apps: readonly string[]) => apps.map((app) => aPod({ labels: { app } }))

test('of the neighbours those in the domains of the node decide about it', async (t) => {
  const all = neighbours({
    near: domains({ zone: { north: 2, south: 3 }, room: { attic: 1 } }),
    nearTotals: new Map([['zone', 5]]),
    far: domains({ rack: { '1': 1, '2': 1 } }),
    unwanted: domains({ zone: { south: 1 } }),
  })
  t.same(neighboursHere(all, node), {
    near: domains({ zone: { north: 2 }, room: {} }),
    nearTotals: new Map([['zone', 5]]),
    far: domains({ rack: { '1': 1 } }),
    unwanted: domains({ zone: {} }),
    matchesItself: false,
  })
  t.equal(neighboursHere(undefined, node), undefined)
})

test('pods that come to a node, or leave it, are counted in its domains alone', async (t) => {
  const before = neighbours({
    near: domains({ zone: { north: 1 }, room: { attic: 1 } }),
    nearTotals: new Map([
      ['zone', 3],
      ['room', 1],
    ]),
    far: domains({ zone: { north: 1 } }),
    unwanted: domains({ rack: { '1': 1 } }),
  })
  const come = neighboursAfter(before, pods('cache', 'web', 'db', 'other'), 1, node, relations)
  t.same(come.near, domains({ zone: { north: 2 }, room: { attic: 1 } }), 'the node has no label of a room')
  t.same([come.nearTotals.get('zone'), come.nearTotals.get('room')], [4, 1])
  t.same(come.far, domains({ zone: { north: 2 } }))
  t.same(come.unwanted, domains({ rack: { '1': 2 }, room: {} }))
  const left = neighboursAfter(before, pods('cache', 'web', 'db'), -1, node, relations)
  t.same(left.near, domains({ zone: {}, room: { attic: 1 } }))
  t.same([left.nearTotals.get('zone'), left.far.get('zone')?.size, left.unwanted.get('rack')?.size], [2, 0, 0])
  t.same(before.near, domains({ zone: { north: 1 }, room: { attic: 1 } }), 'the counts before stay as they are')
})

test('a pod without terms of its own counts those that keep it away', async (t) => {
  const after = neighboursAfter(undefined, pods('cache', 'db'), 1, node, relations)
  t.same([after.near.size, after.far.size, after.matchesItself], [0, 0, true])
  t.same(after.unwanted, domains({ rack: { '1': 1 }, room: {} }))
})
