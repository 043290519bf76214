import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { compactMethod, etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { newSecretKey } from '../encryption/secret-keys.ts'
import { readSecretKeys, writeSecretKeys } from '../encryption/secret-keys-file.ts'
import { etcdKeys } from '../etcd/etcd-keys.ts'
import { methods } from '../etcd/etcd-messages.ts'
import { openEtcdStore } from '../etcd/etcd-store.ts'
import { readBackup, unsealBackup } from '../sqlite/sqlite-backup.ts'
import { openSqliteStore } from '../sqlite/sqlite-store.ts'
import { SecretsKeyError, type Store } from '../store.ts'
import { backUpEtcd, type EtcdBackupNeeds } from './etcd-backup.ts'

const { url, place } = await etcdUnderTest()
const made = '2026-03-01T12:00:00Z'
const authority = new Map([['ca.key', Buffer.from('a key')]])
const contents = { made, version: '1.2.3', authority: async () => authority }

/** A store in etcd with objects of some pages, what a backup of it needs, and a folder for files. */
async function aStore(t: Test, objects: number) {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-backup-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const { servers, tls, prefix, ...more } = place()
  const secretsKeyFile = join(folder, 'secrets.key')
  const { store } = await openEtcdStore({ servers, tls, prefix, secretsKeyFile, ...more })
  t.teardown(() => store.close())
  await Promise.all(Array.from({ length: objects }, (_, i) => store.create('configmaps', aMap(`m-${i}`))))
  await store.create('secrets', aSecret)
  const needs: EtcdBackupNeeds = {
    place: { servers, tls, prefix },
    secretsKeyFile,
    clusterInfoKey: { namespace: 'default', name: 'm-0' },
    checkAuthority: async () => undefined,
    ...more,
  }
  const at = (name: string) => join(folder, name)
  return { store, needs, at, target: at('target') }
}

async function contentsOf(store: Store) {
  const lists = [await store.list('configmaps'), await store.list('secrets')]
  return lists.map(({ items }) =>
    items.map(({ metadata: { resourceVersion: _, ...metadata }, ...object }) => ({ ...object, metadata })),
  )
}

/** What a controller on SQLite has after a restore of this backup. */
async function restoredIn(path: string, { secretsKeyFile, clock, log }: EtcdBackupNeeds) {
  unsealBackup(path)
  const { store } = await openSqliteStore({ path, secretsKeyFile, clock, log })
  const found = { contents: await contentsOf(store), version: Number(await store.version()) }
  await store.close()
  return found
}

test('a backup has every object with its UID, writes nothing into etcd, and is restored into SQLite', {
  skip,
}, async (t) => {
  const { store, needs, target } = await aStore(t, 600)
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const before = (await client.call(methods.range, { key: Buffer.from('/'), countOnly: true })).header?.revision
  let checked: ConfigMap | undefined
  const checkAuthority = async (info: ConfigMap | undefined) => {
    checked = info
  }
  const revision = await backUpEtcd({ ...needs, checkAuthority }, target, contents)
  t.equal(revision, before)
  t.equal(checked?.metadata.name, 'm-0')
  const after = (await client.call(methods.range, { key: Buffer.from('/'), countOnly: true })).header?.revision
  t.equal(after, before, 'nothing was written')
  t.equal(statSync(target).mode & 0o777, 0o600)
  for (const end of ['-wal', '-shm', '-journal']) t.notOk(existsSync(`${target}${end}`))
  const backup = readBackup(target)
  t.same([backup.made, backup.version, backup.authority], [made, '1.2.3', authority])
  t.same(
    [...backup.counts],
    [
      ['configmaps', 600],
      ['secrets', 1],
    ],
  )
  t.same(
    backup.secretsKeyIDs,
    (await readSecretKeys(needs.secretsKeyFile))?.map(({ id }) => id),
  )
  const wanted = await contentsOf(store)
  const restored = await restoredIn(target, needs)
  t.same(restored.contents, wanted)
  t.ok(restored.version > revision)
})

test('a backup that is made while others write is that of one moment', { skip, timeout: 120_000 }, async (t) => {
  const { store, needs, target } = await aStore(t, 600)
  await store.create('configmaps', aMap('a-first'))
  await store.create('configmaps', aMap('z-last'))
  const stop = new AbortController()
  let written = 0
  const writing = (async () => {
    for (let count = 1; !stop.signal.aborted; count++) {
      for (const name of ['a-first', 'z-last']) {
        await store.update('configmaps', { ...aMap(name), data: { count: String(count) } })
      }
      written = count
    }
  })()
  while (written < 3) await new Promise((resolve) => setTimeout(resolve, 5))
  const early = written
  await backUpEtcd(needs, target, contents)
  t.ok(written > early, 'others wrote meanwhile')
  stop.abort()
  await writing
  const [maps = []] = (await restoredIn(target, needs)).contents
  const countOf = (name: string) => {
    const found = maps.find(({ metadata }) => metadata.name === name)
    return Number(found !== undefined && 'data' in found ? found.data?.['count'] : Number.NaN)
  }
  const [first, last] = [countOf('a-first'), countOf('z-last')]
  t.ok(first === last || first === last + 1, `${first} was written before ${last}`)
  t.ok(last >= early, 'every answered write is in it')
})

test('where etcd compacts the revision meanwhile the backup begins again, and gives up with a remedy', {
  skip,
  timeout: 60_000,
}, async (t) => {
  const { store, needs, target } = await aStore(t, 120)
  const warned: string[] = []
  const log = { ...needs.log, warn: (message: string) => void warned.push(message) }
  let compactions = 0
  const door = await slowDoor(t, needs.place.servers, async (pages) => {
    if (pages > compactions) return
    await compactNow(store)
  })
  const through = { ...needs, log, place: { ...needs.place, servers: [door.url] } }
  compactions = 1
  await backUpEtcd(through, target, contents)
  t.same(warned, ['The backup begins again'])
  t.equal(readBackup(target).counts.get('configmaps'), 120)

  rmSync(target)
  compactions = Number.POSITIVE_INFINITY
  await t.rejects(
    backUpEtcd(through, target, contents),
    /Cannot back up .* after 3 attempts: etcd compacted .*--auto-compaction-retention/,
  )
  t.notOk(existsSync(target))
})

test('a backup is refused without a store, the key of its Secrets or its authority, and leaves no file', {
  skip,
}, async (t) => {
  const { needs, target, at } = await aStore(t, 1)
  const other = { ...needs, place: { ...needs.place, prefix: `${needs.place.prefix}-other` } }
  await t.rejects(backUpEtcd(other, target, contents), /There is no store below .*-other in etcd: check --etcd-prefix/)
  const keyless = { ...needs, secretsKeyFile: at('none.key') }
  await t.rejects(backUpEtcd(keyless, target, contents), SecretsKeyError)
  await writeSecretKeys(at('another.key'), [newSecretKey()])
  const keyed = { ...needs, secretsKeyFile: at('another.key') }
  await t.rejects(
    backUpEtcd(keyed, target, contents),
    /which is not in .*another\.key: copy secrets\.key of another controller/,
  )
  const checkAuthority = () => Promise.reject(new Error('The authority is another one'))
  await t.rejects(backUpEtcd({ ...needs, checkAuthority }, target, contents), /The authority is another one/)
  await t.rejects(backUpEtcd({ ...needs, signal: AbortSignal.abort() }, target, contents))
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const value = Buffer.from(JSON.stringify({ state: 'moved', message: 'The objects were moved to SQLite' }))
  await client.call(methods.txn, { success: [{ put: { key: etcdKeys(needs.place.prefix).migration, value } }] })
  await t.rejects(backUpEtcd(needs, target, contents), /The objects were moved to SQLite/)
  t.notOk(existsSync(target))
})

test('where the key of Secrets is replaced meanwhile the backup begins again', { skip }, async (t) => {
  const { needs, target } = await aStore(t, 1)
  const [key] = (await readSecretKeys(needs.secretsKeyFile)) ?? []
  if (key === undefined) throw new Error('There is no key')
  const next = newSecretKey()
  let attempts = 0
  /** As if a Secret that is read had the next key. */
  const checkAuthority = async () => {
    if (++attempts > 1) return
    await writeSecretKeys(needs.secretsKeyFile, [next, key])
    throw new SecretsKeyError('There is no such key')
  }
  await backUpEtcd({ ...needs, checkAuthority }, target, contents)
  t.equal(attempts, 2)
  t.same(readBackup(target).secretsKeyIDs, [next.id])
})

/** The revisions up to now cannot be read any more. */
async function compactNow(store: Store): Promise<void> {
  const { metadata } = await store.update('secrets', { ...aSecret, data: { word: 'c2VzYW1lMg==' } })
  const { resourceVersion } = await store.update('secrets', aSecret).then((secret) => secret.metadata)
  const client = await rawClient(url)
  await client.call(compactMethod, { revision: Number(resourceVersion) })
  client.close()
  if (metadata.resourceVersion === resourceVersion) throw new Error('Nothing was written')
}

const pageBytes = 40_000

/** Leads to etcd. Of what comes back, it passes each of this many bytes on when `onPage` has resolved. */
async function slowDoor(t: Test, [server = '']: readonly string[], onPage: (pages: number) => Promise<void>) {
  const { hostname, port } = new URL(server)
  const sockets = new Set<Socket>()
  let [pages, bytes] = [0, 0]
  const door = createServer((inner) => {
    const outer = connect(Number(port), hostname)
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
    inner.pipe(outer)
    outer.on('data', (piece) => {
      bytes += piece.length
      if (bytes < pageBytes) return void inner.write(piece)
      bytes = 0
      outer.pause()
      onPage(++pages).then(
        () => {
          inner.write(piece)
          outer.resume()
        },
        (error: Error) => outer.destroy(error),
      )
    })
  })
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => door.close(resolve))
  })
  const address = door.address()
  return { url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}` }
}

function aMap(name: string): ConfigMap {
  const data = { text: `of ${name} `.repeat(100) }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name }, data }
}

const aSecret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'default', name: 'hidden' },
  data: { word: 'c2VzYW1l' },
  type: 'Opaque',
} as const
