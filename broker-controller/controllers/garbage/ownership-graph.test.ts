import { test } from 'tap'
import type { Resource } from '../../../api/resources.ts'
import { resources } from '../../../api/resources.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { type OwnedItem, ownershipGraph } from './ownership-graph.ts'

test('an owner that waits for very many dependents is not visited for the end of each, but at once after the last', async (t) => {
  const visits: number[] = []
  const graph = ownershipGraph(({ resource }, afterMs) => {
    if (resource.id === 'replicasets') visits.push(afterMs)
  })
  const owner = object(resources.replicasets, 'web', {
    deletionTimestamp: '2026-01-01T00:00:00Z',
    finalizers: ['foregroundDeletion'],
  })
  graph.observe(owner.resource, owner.object, undefined)
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: owner.object.metadata.uid }]
  const pods = Array.from({ length: 1000 }, (_, at) => object(resources.pods, `web-${at}`, { ownerReferences }))
  for (const pod of pods) graph.observe(pod.resource, pod.object, undefined)
  visits.length = 0
  for (const pod of pods) graph.observe(pod.resource, undefined, pod.object)
  t.equal(visits[0], 99.9, 'the ends of the next 100 ms are one visit')
  t.same(visits.slice(-3), [0, 0, 0])
})

function object(resource: Resource, name: string, metadata: object): OwnedItem {
  const pod = aPod({ name, uid: `uid-${name}` })
  return { resource, object: { ...pod, metadata: { ...pod.metadata, ...metadata } } as OwnedItem['object'] }
}
