import { test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import type { ResourceName } from '../../../api/resources.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { AnyStored } from '../../store/store.ts'
import type { Scales } from '../autoscaling/scales.ts'
import { budgetPods } from './budget-pods.ts'
import { expectedPodsOf, type OwnerScaleNeeds } from './owner-scale.ts'

const expectedOf = (needs: OwnerScaleNeeds, pods: readonly ReturnType<typeof aPod>[]) => {
  const counted = budgetPods()
  for (const [at, pod] of pods.entries()) counted.set({ ...pod, metadata: { ...pod.metadata, name: `pod-${at}` } })
  return expectedPodsOf(needs, 'default', counted)
}
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
  t.equal(await expectedOf({ store }, [of('a', set), of('b', set)]), 5, 'those of the Deployment, once')
  t.equal(await expectedOf({ store }, [of('a', set), of('c', alone)]), 7)
  t.equal(await expectedOf({ store }, [aPod(), of('c', alone)]), 3)
  const gone = { ...alone, metadata: { ...alone.metadata, uid: 'other' } }
  t.equal(await expectedOf({ store }, [of('d', gone)]), 1, 'a controller that is gone has no scale')
  t.equal(await expectedOf({ store }, []), 0)
})

test('pods of a custom kind are expected by its scale, and counted where it has none', async (t) => {
  const store = memoryStore({ clock: fakeClock() })
  const asked: string[] = []
  const get: Scales['get'] = async (namespace, { apiVersion, kind, name }) => {
    asked.push(`${namespace} ${apiVersion} ${kind} ${name}`)
    if (name === 'gone') throw new ApiError('NotFound', 'shops.example.com "gone" not found')
    if (kind === 'Stranger') throw new Error('no matches for kind "Stranger" in group "example.com"')
    if (name === 'broken') throw new ApiError('InternalError', 'conversion webhook failed')
    const spec = name === 'empty' ? {} : { spec: { replicas: 5 } }
    const metadata = { name, namespace, uid: name, resourceVersion: '1', creationTimestamp: '' }
    return {
      resource: 'shops.example.com' as ResourceName,
      scale: { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata, ...spec, status: { replicas: 2 } },
    }
  }
  const of = (owner: string, { kind = 'Shop', uid = owner } = {}) =>
    aPod({
      name: 'a',
      metadata: { ownerReferences: [{ apiVersion: 'example.com/v1', kind, name: owner, uid, controller: true }] },
    })
  const expected = (...pods: readonly ReturnType<typeof aPod>[]) => expectedOf({ store, scales: { get } }, pods)
  t.equal(await expected(of('web'), of('web')), 5)
  t.same(asked, ['default example.com/v1 Shop web'], 'once for all its pods')
  t.equal(await expected(of('empty')), 0, 'as it reads')
  t.equal(await expected(of('web', { uid: 'of an earlier one' }), of('gone'), of('a', { kind: 'Stranger' })), 3)
  t.equal(await expectedOf({ store }, [of('web')]), 1)
  await t.rejects(expected(of('broken')), /conversion webhook failed/)
  asked.length = 0
  const daemon = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }
  t.equal(await expected(aPod({ metadata: { ownerReferences: [daemon] } })), 1)
  t.same(asked, [], 'what is built in is in the store')
})
