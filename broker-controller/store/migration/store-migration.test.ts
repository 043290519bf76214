import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { type Test, test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import { storyOf } from '../../../daemon/log.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { checkpointWindowKey } from '../checkpoints/checkpoint-window.ts'
import { copySummary, verifyCopy } from '../etcd/etcd-copy.ts'
import { etcdKeys } from '../etcd/etcd-keys.ts'
import { compareTarget, methods } from '../etcd/etcd-messages.ts'
import { migrationMark, newOrigin, putMigrationMark } from '../etcd/etcd-origin.ts'
import { openEtcdStore } from '../etcd/etcd-store.ts'
import { ownProcess } from '../etcd/owner-process.ts'
import { acceptCheckpointsStatement, openSqliteFile } from '../sqlite/sqlite-file.ts'
import { openSqliteStore } from '../sqlite/sqlite-store.ts'
import { SecretsKeyError, type Store, StoreInUseError } from '../store.ts'
import { migrateToEtcd, migrateToSqlite } from './store-migration.ts'

const { url, place } = await etcdUnderTest()

/** A SQLite store in a folder of its own, with what a migration of it needs. */
async function aStore(t: Test, objects: number) {
  const folder = mkdtempSync(join(tmpdir(), 'migration-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const { servers, tls, prefix, ...more } = place()
  const path = join(folder, 'store.db')
  const secretsKeyFile = join(folder, 'secrets.key')
  const needs = { path, migratedPath: `${path}.migrated`, secretsKeyFile, place: { servers, tls, prefix }, ...more }
  const inSqlite = async () => (await openSqliteStore({ path, secretsKeyFile, ...more })).store
  const inEtcd = async () => openEtcdStore({ servers, tls, prefix, secretsKeyFile, ...more })
  const store = await inSqlite()
  await Promise.all(Array.from({ length: objects }, (_, i) => store.create('configmaps', aMap(`map-${i}`))))
  await store.create('secrets', aSecret)
  await store.create('leases', aLease)
  await store.create('leases', electionLease)
  const before = await contentsOf(store)
  const version = Number(await store.version())
  await store.close()
  return { needs, before, version, inSqlite, inEtcd }
}

async function contentsOf(store: Store) {
  const lists = [await store.list('configmaps'), await store.list('secrets'), await store.list('leases', 'kube-system')]
  return lists.map(({ items }) =>
    items.map(({ metadata: { resourceVersion: _, ...metadata }, ...object }) => ({ ...object, metadata })),
  )
}

test('1,200 objects move to etcd and back: all are equal, with their UIDs and creation times', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const { needs, before, version, inSqlite, inEtcd } = await aStore(t, 1_200)
  const moved = await migrateToEtcd(needs)
  t.same(
    [...moved].map(([resource, { count }]) => [resource, count]),
    [
      ['configmaps', 1_200],
      ['leases', 1],
      ['secrets', 1],
    ],
  )
  t.notOk(existsSync(needs.path))
  t.ok(existsSync(needs.migratedPath))

  const etcd = await inEtcd()
  t.same(await contentsOf(etcd.store), before)
  t.equal(etcd.origin.acceptsCheckpoints, false)
  await t.rejects(migrateToSqlite({ ...needs, clock: fast(needs.clock) }), StoreInUseError, 'a controller runs')
  await etcd.store.create('leases', aLease)
  await etcd.store.update('configmaps', { ...aMap('map-7'), data: { text: 'changed in etcd' } })
  const inTheEnd = await contentsOf(etcd.store)
  const versions = [Number(await etcd.store.version()), Number(await etcd.store.version('leases'))]
  await etcd.store.close()

  const back = await migrateToSqlite(needs)
  t.equal(back.get('configmaps')?.count, 1_200)
  t.not(back.get('configmaps')?.hash, moved.get('configmaps')?.hash)
  const sqlite = await inSqlite()
  t.same(await contentsOf(sqlite), inTheEnd)
  t.ok(Number(await sqlite.version()) >= Math.max(...versions), 'no version is given twice')
  await sqlite.close()
  t.match(await refusal(inEtcd()), /were moved to SQLite: start without --etcd-servers/)
  await t.rejects(migrateToEtcd(needs), /in etcd is in use, by .*etcdctl del --prefix/)
  t.ok(existsSync(needs.path), 'a migration that is refused leaves the file')
  t.ok(version > 0)
})

test('a prefix with anything in it is refused, and the file stays', { skip }, async (t) => {
  const { needs, before, inSqlite } = await aStore(t, 3)
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const key = Buffer.from(`${needs.place.prefix}/anything`)
  await client.call(methods.txn, { success: [{ put: { key, value: Buffer.from('x') } }] })
  await t.rejects(
    migrateToEtcd(needs),
    /in use, by \/bramble\/test-\d+\/anything among others: choose another --etcd-prefix/,
  )
  const store = await inSqlite()
  t.same(await contentsOf(store), before)
  await store.close()
})

test('a migration that was interrupted can be repeated, and no controller starts before', { skip }, async (t) => {
  const { needs, before, inEtcd } = await aStore(t, 3)
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const keys = etcdKeys(needs.place.prefix)
  await putMigrationMark(client, keys, noCondition, { state: 'copying', message: 'A migration was interrupted' })
  const left = keys.of({ resource: 'configmaps', namespace: 'default', name: 'left' })
  await client.call(methods.txn, { success: [{ put: { key: left, value: Buffer.from('{}') } }] })
  t.match(await refusal(inEtcd()), /A migration was interrupted/)
  await t.rejects(migrateToSqlite({ ...needs, path: `${needs.path}.other` }), /A migration was interrupted/)
  await migrateToEtcd(needs)
  const { store } = await inEtcd()
  t.same(await contentsOf(store), before)
  await store.close()
})

test('nothing is moved while a controller runs, or without the key of Secrets', { skip }, async (t) => {
  const { needs, inSqlite } = await aStore(t, 3)
  const store = await inSqlite()
  await t.rejects(migrateToEtcd(needs), StoreInUseError)
  await store.close()
  rmSync(needs.secretsKeyFile)
  await t.rejects(migrateToEtcd(needs), SecretsKeyError)
  t.ok(existsSync(needs.path))
  await t.rejects(migrateToSqlite({ ...needs, path: `${needs.path}.other` }), /There is no store below/)
})

test('a copy that differs in number or content is refused', async (t) => {
  const key = (name: string) => ({ resource: 'configmaps', namespace: 'default', name })
  const summaryOf = (...bodies: readonly string[]) => {
    const summary = copySummary()
    for (const [i, body] of bodies.entries()) summary.add({ key: key(`${i}`), body })
    return summary.result()
  }
  t.doesNotThrow(() => verifyCopy(summaryOf('a', 'b'), summaryOf('a', 'b')))
  t.throws(
    () => verifyCopy(summaryOf('a', 'b'), summaryOf('a')),
    /configmaps is not equal: it has 1 instead of 2 objects/,
  )
  t.throws(() => verifyCopy(summaryOf('a', 'b'), summaryOf('b', 'a')), /configmaps is not equal: it has other content/)
  t.throws(() => verifyCopy(summaryOf(), summaryOf('a')), /1 instead of 0/)
  t.not(newOrigin(false, 0).id, newOrigin(false, 0).id)
})

test('the copy has no plain Secret, also where the file has some and there is no key', { skip }, async (t) => {
  const { needs } = await aStore(t, 0)
  for (const path of [needs.path, needs.secretsKeyFile]) rmSync(path)
  const plain = (await openSqliteStore({ path: needs.path, clock: needs.clock, log: needs.log })).store
  await plain.create('secrets', aSecret)
  await plain.close()
  await migrateToEtcd(needs)
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const { key, rangeEnd } = etcdKeys(needs.place.prefix).kind('secrets')
  const { kvs } = await client.call(methods.range, { key, rangeEnd })
  t.equal(kvs.length, 1)
  t.match(kvs[0]?.value.toString('latin1'), /^enc:aesgcm:v1:/)
  t.equal(kvs[0]?.modRevision, kvs[0]?.createRevision, 'no earlier revision has it plain')
})

test('a migration that lost its lease on the prefix marks nothing, and leaves no file', { skip }, async (t) => {
  const { needs } = await aStore(t, 3)
  await migrateToEtcd(needs)
  const keys = etcdKeys(needs.place.prefix)
  const { owner } = keys
  const client = await rawClient(url)
  t.teardown(() => client.close())
  // The migration reads the keys of Secrets when it owns the prefix: this pipe holds it there.
  const pipe = `${needs.secretsKeyFile}.pipe`
  spawnSync('mkfifo', ['-m', '600', pipe])
  let moving: Promise<unknown> = Promise.resolve()
  const lost = new Promise<void>((resolve) => {
    const log = { ...needs.log, warn: () => resolve() }
    moving = migrateToSqlite({ ...needs, log, clock: fast(needs.clock), secretsKeyFile: pipe })
    moving.catch(() => undefined)
  })
  const held = await open(pipe, 'w')
  const { kvs } = await client.call(methods.range, { key: owner })
  const value = Buffer.from(JSON.stringify({ kind: 'StoreOwner', ...ownProcess(), place: 'another machine' }))
  await client.call(methods.txn, { success: [{ deleteRange: { key: owner } }] })
  await client.call(methods.txn, { success: [{ put: { key: owner, value } }] })
  await client.call(methods.leaseRevoke, { id: kvs[0]?.lease ?? '' })
  await lost
  await held.writeFile(readFileSync(needs.secretsKeyFile))
  await held.close()
  await t.rejects(moving, /Another controller uses/)
  t.equal(await migrationMark(client, keys), undefined)
  t.notOk(existsSync(needs.path))
})

async function refusal(opening: Promise<unknown>): Promise<string> {
  return opening.then(() => 'opened', storyOf)
}

/** Waits pass ten times as fast. */
function fast<C extends { monotonicMs(): number; sleep(ms: number, signal?: AbortSignal): Promise<void> }>(
  clock: C,
): C {
  return {
    ...clock,
    monotonicMs: () => clock.monotonicMs() * 10,
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms / 10, signal),
  }
}

function aMap(name: string): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name }, data: { text: `of ${name}` } }
}

const aSecret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'default', name: 'hidden' },
  data: { word: 'c2VzYW1l' },
  type: 'Opaque',
} as const

/** It always holds: no store has this key. */
const noCondition = { target: compareTarget.create, key: Buffer.from('/nothing'), createRevision: 0 } as const

const electionLease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'elected', namespace: 'kube-system' },
  spec: { holderIdentity: 'one' },
} as const

const aLease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'n1', namespace: 'kube-node-lease' },
} as const

test('a store that still accepts checkpoints of nodes is not moved', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const { needs, inSqlite, inEtcd } = await aStore(t, 1)
  const file = openSqliteFile(needs.path)
  file.close()
  const database = new Database(needs.path)
  database.exec(acceptCheckpointsStatement)
  database.close()
  const refused = /still accepts checkpoints of nodes: start the controller on it .*checkpoints close/
  await t.rejects(migrateToEtcd(needs), refused, 'it was never started')
  const before = await openSqliteStore({
    path: needs.path,
    clock: needs.clock,
    log: needs.log,
    secretsKeyFile: needs.secretsKeyFile,
  })
  const { id } = before.origin
  await before.store.create('configmaps', aWindow(id, 'open'))
  await before.store.close()
  await t.rejects(migrateToEtcd(needs), refused, 'nodes are awaited')
  t.ok(existsSync(needs.path), 'it is as it was')
  const sqlite = await inSqlite()
  await sqlite.update('configmaps', aWindow(id, 'closed'))
  await sqlite.close()
  await migrateToEtcd(needs)
  const etcd = await inEtcd()
  t.equal(etcd.origin.acceptsCheckpoints, false)
  await etcd.store.close()
})

test('a store in etcd that still accepts checkpoints of nodes is not moved, and stays in use', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const { needs, inSqlite } = await aStore(t, 0)
  const { place, path, secretsKeyFile } = needs
  rmSync(path)
  const inEtcd = () => openEtcdStore({ ...needs, ...place, secretsKeyFile, acceptsCheckpointsIfNew: true })
  const refused = /still accepts checkpoints of nodes: start the controller on it .*checkpoints close/
  const made = await inEtcd()
  const { id } = made.origin
  await made.store.close()
  await t.rejects(migrateToSqlite(needs), refused, 'no window was ever opened')
  const opened = await inEtcd()
  await opened.store.create('configmaps', aWindow(id, 'open'))
  await opened.store.close()
  await t.rejects(migrateToSqlite(needs), refused, 'nodes are awaited')
  t.same(readdirSync(dirname(path)), [basename(secretsKeyFile)], 'there is no file of SQLite, nor a part of one')
  const inUse = await inEtcd()
  t.match(inUse.origin, { id, acceptsCheckpoints: true }, 'it is not marked as moved')
  await inUse.store.update('configmaps', aWindow(id, 'closed'))
  await inUse.store.close()
  t.equal((await migrateToSqlite(needs)).get('configmaps')?.count, 1)
  const sqlite = await inSqlite()
  t.equal((await sqlite.get('configmaps', checkpointWindowKey))?.data?.['state'], 'closed')
  await sqlite.close()
})

function aWindow(store: string, state: string): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...checkpointWindowKey },
    data: { store, state, openSeconds: '60', nodes: 'pi-1' },
  }
}
