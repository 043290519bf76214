import { test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { memoryStore } from '../memory-store.ts'
import type { Store } from '../store.ts'
import { objectSizes } from './object-sizes.ts'
import { limitWarning, storeLimits } from './store-limits.ts'

const kibibyte = 1024
const mebibyte = 2 ** 20
const limits = storeLimits(400 * kibibyte)

function aMap(namespace: string, name: string, kibibytes: number): ConfigMap {
  const metadata = { namespace, name }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text: 'x'.repeat(kibibytes * kibibyte) } }
}

async function filled(store: Store, namespace: string): Promise<void> {
  for (let i = 0; i < 10; i++) await store.create('configmaps', aMap(namespace, `f${i}`, 10))
}

test('beyond its share a namespace gets no new and no larger objects; others do', async (t) => {
  const store = memoryStore({ clock, limits })
  await filled(store, 'a')
  await t.rejects(store.create('configmaps', aMap('a', 'more', 1)), {
    reason: 'Forbidden',
    message:
      /^configmaps "more" is forbidden: the objects of namespace a have 102 KiB, and one namespace may have 100 KiB, a quarter of storeMaxSize/,
    details: { name: 'more', kind: 'configmaps' },
  })
  await t.rejects(store.update('configmaps', aMap('a', 'f1', 12)), { message: /is forbidden/ })
  await store.create('configmaps', aMap('b', 'more', 1))
  await store.update('configmaps', aMap('a', 'f1', 9))
})

test('what frees space is accepted beyond the bound: deletions, marks of them, removed finalizers', async (t) => {
  const store = memoryStore({ clock, limits })
  await filled(store, 'a')
  const marked = { ...aMap('a', 'f1', 10) }
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  await store.update('configmaps', { ...marked, metadata: { ...marked.metadata, deletionTimestamp } })
  await store.delete('configmaps', { namespace: 'a', name: 'f1' })
  await store.create('configmaps', aMap('a', 'more', 1))
  t.equal((await store.list('configmaps', 'a')).items.length, 10)
})

test('a few bytes and statuses are accepted for a sixteenth beyond the bound, so that pods that run do not suffer', async (t) => {
  const store = memoryStore({ clock, limits })
  await filled(store, 'a')
  const grown = (i: number) =>
    store.update('configmaps', { ...aMap('a', `f${i}`, 10), data: { text: 'x'.repeat(11_200) } })
  for (let i = 0; i < 5; i++) await grown(i)
  const failed = await Promise.all(
    [5, 6, 7, 8, 9].map((i) =>
      grown(i).then(
        () => false,
        () => true,
      ),
    ),
  )
  t.ok(failed.some(Boolean), 'it does not go on for ever')
})

test('beyond the bound of the store no object is created, and the answer is 507', async (t) => {
  const store = memoryStore({ clock, limits })
  for (const namespace of ['a', 'b', 'c', 'd']) await filled(store, namespace)
  await t.rejects(store.create('configmaps', aMap('e', 'more', 1)), {
    reason: 'InsufficientStorage',
    code: 507,
    message:
      /^The objects of the fleet have 4\d\d KiB, and storeMaxSize of the controller is 400 KiB: objects cannot be created or grow/,
  })
  await store.delete('configmaps', { namespace: 'a', name: 'f1' })
  await store.delete('configmaps', { namespace: 'a', name: 'f2' })
  await store.create('configmaps', aMap('e', 'more', 1))
})

test('beyond the bound Leases of nodes are still created: after a start no node would be Ready without them', async (t) => {
  const store = memoryStore({ clock, limits })
  for (const namespace of ['a', 'b', 'c', 'd']) await filled(store, namespace)
  const lease = (namespace: string, name: string) =>
    ({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { namespace, name }, spec: {} }) as const
  await store.create('leases', lease('kube-node-lease', 'pi-1'))
  await store.create('leases', lease('kube-system', 'bramble-controller'))
  await t.rejects(store.create('leases', lease('e', 'of-a-client')), { code: 507 })
})

test('at 80 % of a bound there is a warning that names the largest namespace', (t) => {
  const sizes = objectSizes()
  const large = storeLimits(1000 * mebibyte)
  sizes.add('', 100 * mebibyte)
  sizes.add('a', 199 * mebibyte)
  t.equal(limitWarning(large, sizes), undefined)
  sizes.add('a', mebibyte)
  t.match(
    limitWarning(large, sizes),
    /^the objects of namespace a have 200 MiB of the 250 MiB that one namespace may have/,
  )
  for (const other of ['b', 'c', 'd']) sizes.add(other, 190 * mebibyte)
  t.match(
    limitWarning(large, sizes),
    /^the objects of the fleet have 870 MiB of the 1000 MiB of storeMaxSize, .*; most are in namespace a, 200 MiB\./,
  )
  sizes.add('a', -200 * mebibyte)
  t.equal(sizes.of('a'), 0)
  t.match(sizes.largest(), { bytes: 190 * mebibyte })
  t.end()
})
