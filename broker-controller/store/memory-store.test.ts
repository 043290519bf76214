import { test } from 'tap'
import { isApiError } from '../../api/api-error.ts'
import { systemClock } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { storeContract } from '../testing/store-contract.ts'
import { frozenCopy } from './frozen/frozen-copy.ts'
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

test('remembered changes are bounded by bytes, at the cost of the kind that takes most', async (t) => {
  const store = memoryStore({ clock: fakeClock(), historyBytes: 1_000_000 })
  const metadata = { name: 'a', namespace: 'default' }
  const secret = await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata })
  const first = await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata })
  await store.update('secrets', { apiVersion: 'v1', kind: 'Secret', metadata, data: { a: 'MQ==' } })
  const slow = store.watch('configmaps', undefined, new AbortController().signal)[Symbol.asyncIterator]()
  const quick = store.watch('configmaps', undefined, new AbortController().signal)[Symbol.asyncIterator]()
  const waiting = slow.next()
  for (let i = 0; i < 40; i++) {
    const received = quick.next()
    const data = { i: `${i}`, text: 'x'.repeat(100_000) }
    await store.update('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
    t.equal((await received).value?.object.data?.i, `${i}`, 'a reader that keeps up misses none')
  }
  await waiting
  t.ok(await isExpired(slow), 'a reader that lags lists again')
  const from = (version: string) => store.watch('configmaps', version, new AbortController().signal)
  t.ok(await isExpired(from(first.metadata.resourceVersion)[Symbol.asyncIterator]()))
  const last = from(String(Number(await store.version()) - 1))[Symbol.asyncIterator]()
  t.equal((await last.next()).value?.type, 'MODIFIED', 'the latest change is always remembered')
  const calm = store.watch('secrets', secret.metadata.resourceVersion, new AbortController().signal)
  t.equal((await calm[Symbol.asyncIterator]().next()).value?.type, 'MODIFIED', 'a small kind loses nothing')
})

test('a burst is forgotten after some minutes, although its kind does not change any more', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const first = await store.create('configmaps', aMap(0))
  for (let i = 1; i < 3000; i++) await store.create('configmaps', aMap(i))
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'n', namespace: 'kube-node-lease' },
  } as const
  await store.create('leases', lease)
  for (let minute = 0; minute < 10; minute++) {
    await clock.advance(60_000)
    await store.update('leases', { ...lease, spec: { renewTime: `${minute}` } })
  }
  const watch = store.watch('configmaps', first.metadata.resourceVersion, new AbortController().signal)
  t.ok(await isExpired(watch[Symbol.asyncIterator]()))
})

test('a change costs as much among many pods as among few', async (t) => {
  const changes = 300
  const spec = { containers: [{ name: 'main', image: 'image' }] }
  const costAmong = async (count: number) => {
    const store = memoryStore({ clock: systemClock })
    for (let i = 0; i < count; i++) {
      const metadata = { name: `pod-${i}`, namespace: `team-${i % 20}` }
      await store.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec })
    }
    const costs: number[] = []
    for (let round = 0; round < 5; round++) {
      const { items } = await store.list('pods')
      const before = process.cpuUsage()
      for (const pod of items.slice(0, changes)) {
        await store.updateStatus('pods', { ...pod, status: { phase: round % 2 ? 'Running' : 'Pending' } })
      }
      const { user, system } = process.cpuUsage(before)
      costs.push(user + system)
    }
    return Math.min(...costs)
  }
  const [few, many] = [await costAmong(1000), await costAmong(32_000)]
  t.ok(many < 8 * few, `${few} and ${many} microseconds`)
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

function isExpired(watch: AsyncIterator<unknown>): Promise<boolean> {
  return watch.next().then(
    () => false,
    (error: unknown) => isApiError(error, 'Expired'),
  )
}

function aMap(i: number) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `map-${i}`, namespace: 'default' } } as const
}
