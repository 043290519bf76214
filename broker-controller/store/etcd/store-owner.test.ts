import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { type Clock, systemClock } from '../../../daemon/clock.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { etcdUnderTest } from '../../testing/etcd-under-test.ts'
import { StoreInUseError } from '../store.ts'
import { openEtcdStore } from './etcd-store.ts'
import { ownerHasEnded, ownProcess } from './owner-process.ts'
import { acquireStore } from './store-owner.ts'

const { place } = await etcdUnderTest()
const aMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'a' } } as const

/** Waits of a program pass ten times as fast; the leases of etcd do not. */
const fastClock: Clock = {
  monotonicMs: () => systemClock.monotonicMs() * 10,
  wallMs: systemClock.wallMs,
  sleep: (ms, signal) => systemClock.sleep(ms / 10, signal),
}

test('a second controller on the same prefix is refused while the first one runs, and not afterwards', {
  skip,
}, async (t) => {
  const needs = place()
  const first = await openEtcdStore(needs)
  const refused = await openEtcdStore({ ...needs, clock: fastClock }).catch((error: unknown) => error)
  t.type(refused, StoreInUseError)
  t.match(String(refused), /Another controller \(.+, pid \d+\) uses \/bramble\/test-\d+ in etcd: stop it first/)
  await first.store.create('configmaps', aMap)
  await first.store.close()
  const second = await openEtcdStore(needs)
  t.equal((await second.store.list('configmaps')).items.length, 1)
  await second.store.close()
})

test('a controller that was replaced writes nothing more, and ends', { skip }, async (t) => {
  const needs = place()
  const first = await openEtcdStore({ ...needs, clock: fastClock })
  t.teardown(() => first.store.close())
  const second = await openEtcdStore({
    ...needs,
    ownership: (client, keys) =>
      acquireStore({ client, keys, self: ownProcess(), hasEnded: () => true, clock: systemClock, log: needs.log }),
  })
  t.teardown(() => second.store.close())
  const refused = await first.store.create('configmaps', aMap).catch((error: unknown) => error)
  t.ok(isApiError(refused, 'ServiceUnavailable'), String(refused))
  t.match(String(refused), /does not own the store/)
  await second.store.create('configmaps', aMap)
  await t.rejects(first.guard?.run(new AbortController().signal) ?? Promise.resolve(), { name: 'StoreInUseError' })
})

test('opening ends with its signal, while etcd is away and while another controller uses the prefix', {
  skip,
}, async (t) => {
  const needs = place()
  const first = await openEtcdStore(needs)
  t.teardown(() => first.store.close())
  for (const [servers, awaited] of [
    [['http://127.0.0.1:9'], 'Waiting for etcd'],
    [needs.servers, 'Waiting for the previous owner of the store in etcd'],
  ] as const) {
    const stop = new AbortController()
    const info = (message: string) => {
      if (message === awaited) stop.abort()
    }
    let waits = 0
    const clock: Clock = {
      ...systemClock,
      sleep(ms, signal) {
        if (signal === stop.signal) waits++
        return systemClock.sleep(ms, signal)
      },
    }
    await t.rejects(openEtcdStore({ ...needs, servers, clock, log: { ...needs.log, info }, signal: stop.signal }))
    t.equal(waits, 1, awaited)
  }
})

test('an owner has ended when no process of its number and start is there', async (t) => {
  t.notOk(ownerHasEnded(ownProcess()))
  const other = { ...ownProcess(), began: '1' }
  t.ok(ownerHasEnded(other), 'another process has its number')
  t.notOk(ownerHasEnded({ ...other, place: 'another machine' }))
  t.notOk(ownerHasEnded({ ...other, place: '' }))
  const child = spawn('true')
  await once(child, 'exit')
  t.ok(ownerHasEnded({ ...ownProcess(), pid: child.pid ?? 0 }))
})
