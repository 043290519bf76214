import { test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { storeContract } from '../testing/store-contract.ts'
import { frozenCopy } from './frozen-copy.ts'
import { memoryStore } from './memory-store.ts'

storeContract(memoryStore)

test('given the same randomness, a store gives the same uids', async (t) => {
  const uid = async () => {
    const store = memoryStore({ clock: systemClock, random: () => 0.5 })
    const metadata = { name: 'a', namespace: 'default' }
    return (await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata })).metadata.uid
  }
  t.equal(await uid(), '88888888-8888-4888-8888-888888888888')
})

test('what is older than some minutes is forgotten, so that a small fleet does not keep the statuses of weeks', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const metadata = { name: 'a', namespace: 'default' }
  const write = (i: number) =>
    store.update('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { i: `${i}` } })
  const first = await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata })
  const isKnown = async (version: string) => {
    const watch = store.watch('configmaps', version, new AbortController().signal)[Symbol.asyncIterator]()
    return watch.next().then(
      () => true,
      () => false,
    )
  }
  for (let i = 0; i < 250; i++) await write(i)
  t.ok(await isKnown(first.metadata.resourceVersion), 'many in a short time are all remembered')
  const later = await store.version()
  await clock.advance(6 * 60_000)
  await write(251)
  t.notOk(await isKnown(first.metadata.resourceVersion))
  t.ok(await isKnown(later), 'a watcher that was there goes on')
})

test('ten thousand nodes with ten pods each are listed and changed in little time', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const spec = { containers: [{ name: 'main', image: 'image' }] }
  for (let i = 0; i < 100_000; i++) {
    const metadata = { name: `pod-${i}`, namespace: `team-${i % 20}` }
    await store.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec })
  }
  const { items } = await store.list('pods')
  t.equal(items.length, 100_000)
  const started = performance.now()
  for (const pod of items.slice(0, 1000)) await store.updateStatus('pods', { ...pod, status: { phase: 'Running' } })
  await store.list('pods')
  t.ok(performance.now() - started < 2000, 'far from the limit on any machine')
})

test('a frozen copy leaves out what is undefined and shares what is frozen', async (t) => {
  const shared = Object.freeze({ a: 1 })
  const copy = frozenCopy({ shared, missing: undefined, list: [{ b: undefined }] })
  t.same(Object.keys(copy), ['shared', 'list'])
  t.equal(copy.shared, shared)
  t.ok(Object.isFrozen(copy.list[0]))
  t.ok('__proto__' in frozenCopy(JSON.parse('{"__proto__":{"polluted":1}}')))
  t.equal(({} as { polluted?: number }).polluted, undefined)
})
