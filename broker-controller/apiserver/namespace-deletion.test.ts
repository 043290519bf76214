import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { ExtensionContent } from './aggregator/extension-content.ts'
import type { NamespaceContent } from './aggregator/namespace-content.ts'
import { namespaceDeletion } from './namespace-deletion.ts'

test('a namespace is deleted after its last pod', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const stopping = new AbortController()
  const running = namespaceDeletion({ store, kinds: builtInKinds, clock, log: quietLog(t) }).run(stopping.signal)
  const key = { namespace: '', name: 'team' }
  const namespace = await store.create('namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'team', deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/hold'] },
    spec: { finalizers: ['kubernetes', 'example.com/data'] },
    status: { phase: 'Terminating' },
  })
  const pod = { namespace: 'team', name: 'web' }
  await store.create('pods', aPod({ ...pod, nodeName: 'pi-01', phase: 'Running' }))
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'team', name: 'a' } })
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'other', name: 'a' } })
  await clock.advance(5000)
  t.match(await store.get('pods', pod), { metadata: { deletionGracePeriodSeconds: 30 } }, 'its node ends it')
  t.equal(await store.get('configmaps', { namespace: 'team', name: 'a' }), undefined)
  t.match(await store.get('namespaces', key), { metadata: { uid: namespace.metadata.uid } }, 'still there')
  t.match((await store.get('namespaces', key))?.status?.conditions, [
    {},
    {},
    {},
    { type: 'NamespaceContentRemaining', message: 'Some resources are remaining: pods. has 1 resource instances' },
    { type: 'NamespaceFinalizersRemaining', status: 'False' },
  ])
  await store.delete('pods', pod)
  await clock.advance(5000)
  const held = await store.get('namespaces', key)
  if (held === undefined) return t.fail('its finalizer did not hold it')
  await store.update('namespaces', { ...held, metadata: { ...held.metadata, finalizers: [] } })
  await clock.advance(5000)
  const finalized = await store.get('namespaces', key)
  if (finalized === undefined) return t.fail('the finalizer in its spec did not hold it')
  await store.update('namespaces', { ...finalized, spec: { finalizers: ['kubernetes'] } })
  await clock.advance(5000)
  t.equal(await store.get('namespaces', key), undefined)
  t.match(await store.get('configmaps', { namespace: 'other', name: 'a' }), {}, 'others are left alone')
  stopping.abort()
  await running
})

test('a kind that cannot be deleted keeps the namespace, and not the other kinds', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const order: string[] = []
  let isBroken = true
  const failing: typeof store = {
    ...store,
    async delete(resource, key, preconditions) {
      if (isBroken && resource === 'configmaps') throw new Error('no space left on device')
      order.push(resource)
      return store.delete(resource, key, preconditions)
    },
  }
  const stopping = new AbortController()
  const running = namespaceDeletion({ store: failing, kinds: builtInKinds, clock, log: quietLog(t) }).run(
    stopping.signal,
  )
  const inTeam = { namespace: 'team', name: 'a' }
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: inTeam })
  await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata: inTeam })
  await store.create('pods', aPod({ ...inTeam, phase: 'Succeeded' }))
  await store.create('namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'team', deletionTimestamp: '2026-01-01T00:00:00Z' },
  })
  await clock.advance(5000)
  t.same(order, ['pods', 'secrets'], 'pods first')
  const key = { namespace: '', name: 'team' }
  t.match((await store.get('namespaces', key))?.status?.conditions?.[2], {
    type: 'NamespaceDeletionContentFailure',
    status: 'True',
    message: 'Failed to delete all resource types, 1 remaining: configmaps.: no space left on device',
  })
  isBroken = false
  await clock.advance(600_000)
  t.equal(await store.get('namespaces', key), undefined)
  t.same(order, ['pods', 'secrets', 'configmaps', 'namespaces'])
  stopping.abort()
  await running
})

test('what creates pods goes before the pods, and many pods go together, until the controller ends', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const order: string[] = []
  let [together, most] = [0, 0]
  const slow: typeof store = {
    ...store,
    async delete(resource, key, preconditions) {
      if (order.at(-1) !== resource) order.push(resource)
      most = Math.max(most, ++together)
      await clock.sleep(1000)
      together -= 1
      return store.delete(resource, key, preconditions)
    },
  }
  const inTeam = { namespace: 'team', name: 'a' }
  const [labels, spec] = [{ app: 'a' }, { containers: [{ name: 'main', image: 'web:1' }] }]
  const workload = { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } }
  await store.create('deployments', { apiVersion: 'apps/v1', kind: 'Deployment', metadata: inTeam, spec: workload })
  await store.create('replicasets', { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: inTeam, spec: workload })
  for (let at = 0; at < 1200; at++) await store.create('pods', aPod({ name: `p-${at}`, namespace: 'team' }))
  await store.create('namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'team', deletionTimestamp: '2026-01-01T00:00:00Z' },
  })
  const stopping = new AbortController()
  const running = namespaceDeletion({ store: slow, kinds: builtInKinds, clock, log: quietLog(t) }).run(stopping.signal)
  await clock.advance(2500)
  t.same(order, ['deployments', 'replicasets', 'pods'])
  t.equal(most, 100, 'they are written together')
  stopping.abort()
  await clock.advance(1000)
  await running
  t.equal((await store.list('pods', 'team')).items.length, 1100, 'the end of the controller waits for no others')
})

test('what extension servers have there goes with the namespace, which waits for those that do not answer', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const flunders = { name: 'flunders', group: 'wardle.example.com' }
  const answers: NamespaceContent[] = [
    { remaining: [{ kind: flunders, finalizers: [[]] }], failures: [], undiscovered: [] },
    { remaining: [], failures: [], undiscovered: ['wardle.example.com/v1'] },
  ]
  const asked: string[] = []
  const extensionContent: ExtensionContent = {
    async remove(namespace) {
      asked.push(namespace)
      return answers[0] ?? { remaining: [], failures: [], undiscovered: [] }
    },
  }
  const log = quietLog(t)
  const stopping = new AbortController()
  const running = namespaceDeletion({ store, kinds: builtInKinds, extensionContent, clock, log }).run(stopping.signal)
  const key = { namespace: '', name: 'team' }
  const conditions = async () => (await store.get('namespaces', key))?.status?.conditions ?? []
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'team', name: 'a' } })
  await store.create('namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'team', deletionTimestamp: '2026-01-01T00:00:00Z' },
  })
  await clock.advance(5_000)
  t.match((await conditions())[3], {
    type: 'NamespaceContentRemaining',
    message: 'Some resources are remaining: flunders.wardle.example.com has 1 resource instances',
  })
  answers.shift()
  await clock.advance(5_000)
  t.match((await conditions())[0], {
    type: 'NamespaceDeletionDiscoveryFailure',
    status: 'True',
    message: /^Discovery failed for some groups, 1 failing: .*: wardle\.example\.com\/v1: stale GroupVersion discovery/,
  })
  t.equal(await store.get('configmaps', { namespace: 'team', name: 'a' }), undefined, 'its own content is gone')
  answers.shift()
  await clock.advance(600_000)
  t.equal(await store.get('namespaces', key), undefined)
  t.same([...new Set(asked)], ['team'])
  stopping.abort()
  await running
})

test('an extension server that does not answer holds up no other namespace', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const stopping = new AbortController()
  const extensionContent: ExtensionContent = {
    async remove(namespace, signal) {
      if (namespace === 'held') await clock.sleep(1_000_000, signal)
      return { remaining: [], failures: [], undiscovered: [] }
    },
  }
  const running = namespaceDeletion({ store, kinds: builtInKinds, extensionContent, clock, log: quietLog(t) }).run(
    stopping.signal,
  )
  for (const name of ['held', 'team']) {
    const metadata = { name, deletionTimestamp: '2026-01-01T00:00:00Z' }
    await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata })
  }
  await clock.advance(5_000)
  t.equal(await store.get('namespaces', { namespace: '', name: 'team' }), undefined)
  t.ok(await store.get('namespaces', { namespace: '', name: 'held' }))
  stopping.abort()
  await running
})
