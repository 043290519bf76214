import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { etcdCluster, noEtcd as skip } from '../../../test/support/etcd.ts'
import { eventually } from '../../../test/support/wait.ts'
import type { Store, WatchEvent } from '../store.ts'
import { openEtcdStore } from './etcd-store.ts'

const prefix = '/bramble/default'

test('three members, the leader killed under 16 writers: no answered write is lost, the watch misses and repeats nothing', {
  skip,
  timeout: 180_000,
}, async (t) => {
  const cluster = await etcdCluster({ size: 3, tls: true })
  t.teardown(() => cluster.remove())
  const place = { servers: cluster.urls, tls: cluster.tls ?? {}, prefix, clock, log: quietLog(t) }
  const { store } = await openEtcdStore(place)
  const first = await store.create('configmaps', aMap('first', 0))
  const stop = new AbortController()
  const events: WatchEvent<'configmaps'>[] = []
  const watching = (async () => {
    for await (const event of store.watch('configmaps', first.metadata.resourceVersion, stop.signal)) events.push(event)
  })()
  const writing = new AbortController()
  const writers = Array.from({ length: 16 }, (_, i) => writeUntil(store, `writer-${i}`, writing.signal))
  for (let kills = 0; kills < 3; kills++) {
    await pause(2_000)
    const leaders = await Promise.all(cluster.members.map((member) => member.isLeader().catch(() => false)))
    const leader = cluster.members[leaders.indexOf(true)]
    await leader?.kill()
    await pause(3_000)
    await leader?.start()
  }
  writing.abort()
  const written = await Promise.all(writers)
  const answered = written.flatMap(({ rounds }) => rounds)
  const unanswered = written.reduce((sum, { timeouts }) => sum + timeouts, 0)
  t.ok(answered.length > 100, `${answered.length} answered writes, ${unanswered} without an answer`)
  const last = await answeredUpdate(store, aMap('first', 1), () => undefined)
  // Not the last one itself: etcd may apply a write later whose client has not waited for an answer.
  while ((events.at(-1)?.version ?? 0) < Number(last.metadata.resourceVersion)) await pause(20)
  stop.abort()
  await watching

  const versions = events.map(({ version }) => version)
  t.same(
    versions,
    [...new Set(versions)].sort((a, b) => a - b),
    'in order, and none twice',
  )
  const seen = new Set(events.map(({ object: { metadata, data } }) => `${metadata.name} ${data?.['round']}`))
  t.same(
    answered.filter((write) => !seen.has(write)),
    [],
    'each answered write was watched',
  )
  await store.close()

  const again = await openEtcdStore(place)
  t.teardown(() => again.store.close())
  for (const { name, rounds } of written) {
    const round = Number((await again.store.get('configmaps', { namespace: 'default', name }))?.data?.['round'])
    t.ok(round >= rounds.length && round >= Number(rounds.at(-1)?.split(' ')[1]), `${name} is at ${round}`)
  }
})

/** Each round is one update, whose last attempt was answered. */
async function writeUntil(store: Store, name: string, signal: AbortSignal) {
  const rounds: string[] = []
  let timeouts = 0
  await store.create('configmaps', aMap(name, 0))
  for (let round = 1; !signal.aborted; round++) {
    await answeredUpdate(store, aMap(name, round), () => timeouts++)
    rounds.push(`${name} ${round}`)
  }
  return { name, rounds, timeouts }
}

/** Again while there is no leader, or no answer. */
async function answeredUpdate(store: Store, object: ConfigMap, timedOut: () => void) {
  for (;;) {
    try {
      return await store.update('configmaps', object)
    } catch (error) {
      if (isApiError(error, 'Timeout')) timedOut()
      else if (!isApiError(error, 'ServiceUnavailable')) throw error
    }
  }
}

test('three members, each of them frozen in turn: a write goes on meanwhile', {
  skip,
  timeout: 180_000,
}, async (t) => {
  const cluster = await etcdCluster({ size: 3, tls: true })
  t.teardown(() => cluster.remove())
  const place = { servers: cluster.urls, tls: cluster.tls ?? {}, prefix, clock, log: quietLog(t) }
  const { store } = await openEtcdStore(place)
  t.teardown(() => store.close())
  await store.create('configmaps', aMap('a', 0))
  for (const [round, member] of cluster.members.entries()) {
    const led = await member.isLeader()
    member.freeze()
    const frozenMs = performance.now()
    await answeredUpdate(store, aMap('a', round + 1), () => undefined)
    const took = Math.round(performance.now() - frozenMs)
    // A call ends after 1.5 s. Where there was no leader yet, the next member is asked, which may be the frozen one for 1 s.
    t.pass(`a ${led ? 'leader' : 'follower'} was frozen, and the write took ${took} ms`)
    member.thaw()
    // It may have been elected again, and one that led notices only later that another one does.
    await eventually('one member leads', async () => {
      const leaders = await Promise.all(cluster.members.map((one) => one.isLeader().catch(() => false)))
      return leaders.filter((isLeader) => isLeader).length === 1
    })
  }
})

test('an etcd that was killed comes back with everything that was answered', { skip, timeout: 180_000 }, async (t) => {
  const cluster = await etcdCluster({ tls: true })
  t.teardown(() => cluster.remove())
  const place = { servers: cluster.urls, tls: cluster.tls ?? {}, prefix, clock, log: quietLog(t) }
  const opened = await openEtcdStore(place)
  const { store } = opened
  t.teardown(() => store.close())
  const made = await store.create('configmaps', aMap('a', 1))
  const stop = new AbortController()
  const watch = store.watch('configmaps', made.metadata.resourceVersion, stop.signal)[Symbol.asyncIterator]()
  const next = watch.next()
  await cluster.members[0]?.kill()
  const refused = await store.update('configmaps', aMap('a', 2)).catch((error: unknown) => error)
  t.ok(isApiError(refused, 'ServiceUnavailable') || isApiError(refused, 'Timeout'), String(refused))
  t.same(await store.get('configmaps', { namespace: 'default', name: 'a' }), made, 'reads go on')
  t.match(await opened.problems?.(), [/No connection to https:/])
  await cluster.members[0]?.start()
  const updated = await answeredUpdate(store, aMap('a', 3), () => undefined)
  const { value: seen } = await next
  // If an update had no answer, the watch may have the first attempt.
  t.match(seen?.object, { metadata: { name: 'a' }, data: updated.data })
  t.same(await opened.problems?.(), [])
})

test('without a certificate that etcd accepts, or without etcd, the error names the reason and the flags', {
  skip,
  timeout: 180_000,
}, async (t) => {
  const cluster = await etcdCluster({ tls: true })
  t.teardown(() => cluster.remove())
  const fast = {
    ...clock,
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms / 10, signal),
    monotonicMs: () => clock.monotonicMs() * 10,
  }
  const place = { servers: cluster.urls, tls: {}, prefix, clock: fast, log: quietLog(t) }
  const story = async (more: object) => {
    const error = await openEtcdStore({ ...place, ...more }).catch((error: unknown) => error)
    return error instanceof Error && error.cause instanceof Error
      ? `${error.message}: ${error.cause.message}`
      : String(error)
  }
  t.match(
    await story({}),
    /Cannot open the store \/bramble\/default in etcd at https:.*unable to verify the first certificate.*--etcd-cafile/,
  )
  const { ca = Buffer.alloc(0) } = cluster.tls ?? {}
  t.match(await story({ tls: { ca } }), /certificate required|bad certificate|Connection dropped/)
  const elsewhere = cluster.urls.map((url) => url.replace('127.0.0.1', '[::ffff:127.0.0.1]'))
  t.match(await story({ tls: cluster.tls, servers: elsewhere }), /does not match certificate|not in the cert/)
  await cluster.members[0]?.kill()
  t.match(await story({ tls: cluster.tls }), /ECONNREFUSED.*Check that etcd runs, and --etcd-servers/)
})

function aMap(name: string, round: number): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name },
    data: { round: String(round) },
  }
}
