import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type Test, test } from 'tap'
import type { Clock } from '../../../daemon/clock.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { etcdUnderTest } from '../../testing/etcd-under-test.ts'
import { openEtcdStore } from '../etcd/etcd-store.ts'
import { acceptCheckpointsStatement } from '../sqlite/sqlite-file.ts'
import { openSqliteStore } from '../sqlite/sqlite-store.ts'
import { SecretsKeyError, type Store, StoreInUseError } from '../store.ts'
import { restoreToEtcd } from './etcd-restore.ts'

const { place } = await etcdUnderTest()

/** The file of a restored store, and a prefix of etcd for it. */
async function aFile(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-restore-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const [path, keys] = [join(folder, 'store.db'), join(folder, 'secrets.key')]
  const { servers, tls, prefix, ...more } = place()
  const { store } = await openSqliteStore({ path, secretsKeyFile: keys, ...more })
  for (let i = 0; i < 100; i++) await store.create('configmaps', aMap(`map-${i}`))
  await store.create('secrets', aSecret)
  const before = await contentsOf(store)
  await store.close()
  const database = new Database(path)
  database.exec(acceptCheckpointsStatement)
  const origin = database.prepare<[], { id: string }>('SELECT id FROM origin').get()
  database.exec("UPDATE counters SET value = 5000000000 WHERE name = 'reservedVersion'")
  database.close()
  const opened = () => openEtcdStore({ servers, tls, prefix, secretsKeyFile: keys, ...more })
  return { path, keys, before, opened, id: origin?.id, needs: { place: { servers, tls, prefix }, ...more } }
}

async function contentsOf(store: Store) {
  const lists = [await store.list('configmaps'), await store.list('secrets')]
  return lists.map(({ items }) =>
    items.map(({ metadata: { resourceVersion: _, ...metadata }, ...object }) => ({ ...object, metadata })),
  )
}

test('a restored store is in etcd with all objects, UIDs and its identity, and accepts checkpoints', {
  skip,
}, async (t) => {
  const { path, keys, before, opened, id, needs } = await aFile(t)
  const seen: string[] = []
  const finish = async () => void seen.push('finish')
  const summary = await restoreToEtcd(needs, path, keys, finish)
  t.same(
    [...summary].map(([resource, { count }]) => [resource, count]),
    [
      ['configmaps', 100],
      ['secrets', 1],
    ],
  )
  t.same(seen, ['finish'])
  const { store, origin } = await opened()
  t.same(await contentsOf(store), before)
  t.match(origin, { id, acceptsCheckpoints: true, sinceMs: Number })
  t.ok(Number(await store.version('leases')) >= 5_000_000_000, 'no version of a lease is assigned again')
  const busy = restoreToEtcd({ ...needs, clock: fast(needs.clock) }, path, keys, finish)
  await t.rejects(busy, StoreInUseError, 'a controller runs')
  await store.close()
  await t.rejects(
    restoreToEtcd(needs, path, keys, finish),
    /in etcd is in use, by .*: choose another .* delete what is there/,
  )
  t.same(seen, ['finish'], 'nothing was finished again')
})

test('no controller starts on a restore that was interrupted, and it can be repeated', { skip }, async (t) => {
  const { path, keys, before, opened, needs } = await aFile(t)
  const interrupted = () => Promise.reject(new Error('The power is gone'))
  await t.rejects(restoreToEtcd(needs, path, keys, interrupted), /The power is gone/)
  await t.rejects(opened(), {
    cause: { message: /A restore into .* was interrupted: run .*restore FILE --replace' again/ },
  })
  const stopped = { ...needs, signal: AbortSignal.abort() }
  await t.rejects(restoreToEtcd(stopped, path, keys, interrupted))
  await t.rejects(opened(), { cause: { message: /was interrupted/ } })
  await restoreToEtcd(needs, path, keys, async () => undefined)
  const { store } = await opened()
  t.same(await contentsOf(store), before)
  await store.close()
})

test('without the key of its Secrets nothing is restored', { skip }, async (t) => {
  const { path, keys, opened, needs } = await aFile(t)
  await t.rejects(
    restoreToEtcd(needs, path, `${keys}.other`, async () => undefined),
    SecretsKeyError,
  )
  const { store } = await opened()
  t.same((await store.list('configmaps')).items, [])
  await store.close()
})

/** Waits pass ten times as fast. */
function fast(clock: Clock): Clock {
  const sleep = (ms: number, signal?: AbortSignal) => clock.sleep(ms / 10, signal)
  return { ...clock, monotonicMs: () => clock.monotonicMs() * 10, sleep }
}

function aMap(name: string) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name }, data: { of: name } } as const
}

const aSecret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'default', name: 'hidden' },
  data: { word: 'c2VzYW1l' },
} as const
