import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { AnyStored } from '../../store/store.ts'
import { expectedPodsOf } from './owner-scale.ts'

const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
const selector = { matchLabels: { app: 'web' } }

test('pods are expected by the scale of their controllers, others as they are', async (t) => {
  const store = memoryStore({ clock: fakeClock() })
  const deployment = await store.create('deployments', {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas: 5, selector, template },
  })
  const refer = (object: AnyStored) => {
    const { apiVersion, kind, metadata } = object
    return [{ apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }]
  }
  const set = await store.create('replicasets', {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web-1', namespace: 'default', ownerReferences: refer(deployment) },
    spec: { replicas: 3, selector, template },
  })
  const alone = await store.create('replicasets', {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'alone', namespace: 'default' },
    spec: { replicas: 2, selector, template },
  })
  const of = (name: string, owner: AnyStored) => aPod({ name, metadata: { ownerReferences: refer(owner) } })
  t.equal(await expectedPodsOf(store, [of('a', set), of('b', set)]), 5, 'those of the Deployment, once')
  t.equal(await expectedPodsOf(store, [of('a', set), of('c', alone)]), 7)
  t.equal(await expectedPodsOf(store, [aPod(), of('c', alone)]), 3)
  const gone = { ...alone, metadata: { ...alone.metadata, uid: 'other' } }
  t.equal(await expectedPodsOf(store, [of('d', gone)]), 1, 'a controller that is gone has no scale')
  t.equal(await expectedPodsOf(store, []), 0)
})
