import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { t, test } from 'tap'
import { leaderLeaseKey } from '../../../api/lease.ts'
import type { Pod } from '../../../api/pod.ts'
import { builtInResources, customResource, resourceRegistry } from '../../../api/resources.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { openLog } from '../../../daemon/log.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { storeContract } from '../../testing/store-contract.ts'
import { openSqliteStore } from './sqlite-store.ts'

const log = openLog({ level: 'error', format: 'json', write: () => undefined })
const clock = systemClock
let files = 0

const folder = mkdtempSync(join(tmpdir(), 'sqlite-store-'))
t.teardown(() => rmSync(folder, { recursive: true }))

storeContract(async ({ historyLength }) => {
  const { store } = await openSqliteStore({ path: aPath(), clock, log, historyLength, statusDelayMs: 20 })
  return store
})

test('objects of a kind that is defined at run time are there after a start, before and without their definition', async (t) => {
  const path = aPath()
  const widgets = customResource('widgets', 'Widget', 'example.com', {}, { namespaced: true })
  const resources = resourceRegistry([...builtInResources.all, widgets])
  const { store: first } = await openSqliteStore({ path, resources, clock, log })
  const metadata = { name: 'a', namespace: 'default' }
  const made = await first.create('widgets.example.com', { apiVersion: 'example.com/v1', kind: 'Widget', metadata })
  await first.close()
  const { store: second } = await openSqliteStore({ path, clock, log })
  t.same((await second.list('widgets.example.com')).items, [made])
  await t.rejects(second.update('widgets.example.com', made), { code: 404 })
  await second.close()
})

test('what was written is there after closing and opening, and versions go on', async (t) => {
  const path = aPath()
  const { store: first } = await openSqliteStore({ path, clock, log })
  const pod = await first.create('pods', aPod('web'))
  const running = await first.updateStatus('pods', { ...pod, status: { phase: 'Running' } })
  await first.create('pods', aPod('gone'))
  await first.delete('pods', { namespace: 'default', name: 'gone' })
  await first.create('leases', aLease)
  await first.create('leases', { ...aLease, metadata: leaderLeaseKey })
  const held = await first.create('leases', electionLease)
  const renewed = await first.update('leases', { ...held, spec: { ...held.spec, holderIdentity: 'two' } })
  const version = await first.version()
  await first.close()

  const { store: second } = await openSqliteStore({ path, clock, log })
  t.teardown(() => second.close())
  t.same((await second.list('pods')).items, [running])
  t.ok(Object.isFrozen((await second.list('pods')).items[0]?.spec))
  t.same((await second.list('leases')).items, [renewed], 'those of nodes are kept in memory only')
  t.equal(await second.version(), version)
  t.ok(Number((await second.create('pods', aPod('more'))).metadata.resourceVersion) > Number(version))
})

test('the pods of a node are found after closing and opening', async (t) => {
  const path = aPath()
  const { store: first } = await openSqliteStore({ path, clock, log })
  const pod = aPod('web')
  const made = await first.create('pods', { ...pod, spec: { ...pod.spec, nodeName: 'pi-1' } })
  await first.close()
  const { store: second } = await openSqliteStore({ path, clock, log })
  t.teardown(() => second.close())
  t.same(await second.podsOfNode('pi-1'), [made])
})

test('a new heartbeat in the status of a node is kept in memory, and written with the next change of it', async (t) => {
  const path = aPath()
  const { store } = await openSqliteStore({ path, clock, log, statusDelayMs: 1 })
  const images = Array.from({ length: 30 }, (_, i) => ({ names: [`image:${i}`], sizeBytes: i }))
  const statusAt = (minute: number, ready: 'True' | 'False' = 'True') => ({
    conditions: [
      { type: 'MemoryPressure', status: 'False', lastHeartbeatTime: `2026-01-01T00:0${minute}:00Z` } as const,
      { type: 'Ready', status: ready, lastHeartbeatTime: `2026-01-01T00:0${minute}:00Z` } as const,
    ],
    images,
  })
  const node = await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } })
  await store.updateStatus('nodes', { ...node, metadata: { name: 'pi-1' }, status: statusAt(0) })
  const written = () => statSync(`${path}-wal`).size
  const before = written()
  const watch = store.watch('nodes', undefined, new AbortController().signal)[Symbol.asyncIterator]()
  const seen = watch.next()
  for (const minute of [1, 2, 3]) {
    const beat = await store.updateStatus('nodes', { ...node, metadata: { name: 'pi-1' }, status: statusAt(minute) })
    t.equal((await store.get('nodes', { namespace: '', name: 'pi-1' }))?.metadata, beat.metadata)
  }
  t.match((await seen).value?.object.status, statusAt(1))
  t.equal(written(), before, 'nothing was written')
  const inOrder = [
    store.updateStatus('nodes', { ...node, metadata: { name: 'pi-1' }, status: statusAt(4, 'False') }),
    store.updateStatus('nodes', { ...node, metadata: { name: 'pi-1' }, status: statusAt(5, 'False') }),
  ]
  await Promise.all(inOrder)
  t.ok(written() > before)
  t.match((await store.get('nodes', { namespace: '', name: 'pi-1' }))?.status, statusAt(5, 'False'))
  await store.close()
  const { store: later } = await openSqliteStore({ path, clock, log })
  t.teardown(() => later.close())
  t.match((await later.get('nodes', { namespace: '', name: 'pi-1' }))?.status, statusAt(4, 'False'))
})

test('the file is for its owner only, and for one process at a time', async (t) => {
  const path = aPath()
  const { store } = await openSqliteStore({ path, clock, log })
  await store.create('pods', aPod('web'))
  for (const file of [path, `${path}-wal`]) t.equal(statSync(file).mode & 0o777, 0o600, file)
  await t.rejects(openSqliteStore({ path, clock, log }), { message: /is in use by another process/ })
  await store.close()
  await (await openSqliteStore({ path, clock, log })).store.close()
})

test('a file of a newer program is refused with both versions named', async (t) => {
  const path = aPath()
  await (await openSqliteStore({ path, clock, log })).store.close()
  const database = new Database(path)
  database.pragma('user_version = 99')
  database.close()
  const error = await openSqliteStore({ path, clock, log }).catch((error: Error) => error)
  t.match(error, {
    name: 'LaterStoreError',
    message: /written by a newer version: it has format 99, this version reads up to 3/,
  })
})

test('specifications written in one tick share a transaction; a status waits for others, and is hurried along', async (t) => {
  const { store } = await openSqliteStore({ path: aPath(), clock, log, statusDelayMs: 60_000 })
  t.teardown(() => store.close())
  const names = Array.from({ length: 500 }, (_, i) => `web-${i}`)
  await Promise.all(names.map((name) => store.create('pods', aPod(name))))
  const answered: string[] = []
  const status = store.updateStatus('pods', { ...aPod('web-0'), status: { phase: 'Running' } })
  const waiting = status.then(() => answered.push('status'))
  t.equal((await store.get('pods', { namespace: 'default', name: 'web-0' }))?.status, undefined, 'not yet seen')
  await store.create('leases', aLease)
  t.same(answered, [], 'the lease of a node waits for nothing and hurries nothing')
  await store.create('pods', aPod('next'))
  await waiting
  t.equal((await store.get('pods', { namespace: 'default', name: 'web-0' }))?.status?.phase, 'Running')
})

test('a renewal of the lease of a client shares a transaction with the next statuses', async (t) => {
  const { store } = await openSqliteStore({ path: aPath(), clock, log, statusDelayMs: 60_000 })
  t.teardown(() => store.close())
  const held = await store.create('leases', electionLease)
  const answered: string[] = []
  const renewal = store
    .update('leases', { ...held, spec: { holderIdentity: 'two' } })
    .then(() => answered.push('renewal'))
  await store.get('pods', { namespace: 'default', name: 'none' })
  t.same(answered, [])
  await store.create('pods', aPod('web'))
  await renewal
  const cursor = store.changes('leases', held.metadata.resourceVersion)
  const second = store.update('leases', { ...electionLease, spec: { holderIdentity: 'three' } })
  await store.create('leases', aLease)
  await second
  const read = [cursor.next(), cursor.next(), cursor.next()].map((change) => change?.object.spec?.holderIdentity)
  t.same(read, ['two', 'three', undefined], 'that of a node comes after what was written before it')
})

test('a change that is still being written can be read when its conflict is reported', async (t) => {
  const { store } = await openSqliteStore({ path: aPath(), clock, log, statusDelayMs: 60_000 })
  t.teardown(() => store.close())
  const pod = await store.create('pods', aPod('web'))
  const status = store.updateStatus('pods', { ...pod, status: { phase: 'Running' } })
  const labelled = { ...pod, metadata: { ...pod.metadata, labels: { a: 'b' } } }
  await t.rejects(store.update('pods', labelled), { name: 'ApiError', message: /has been modified/ })
  t.equal(await store.get('pods', { namespace: 'default', name: 'web' }), await status)
})

test('every answered write is there after SIGKILL at any moment, and no version is given twice', async (t) => {
  const path = aPath()
  const versions: number[] = []
  let last = new Map<string, { version: number; round: number }>()
  for (let kill = 0; kill < 6; kill++) {
    const writer = startWriter([path])
    const lines = await linesUntilKilled(writer, { answers: 5, afterMs: Math.random() * 150 })
    const answers = lines.map((line) => line.split(' '))
    for (const [name = '', version, round] of answers) {
      last = new Map(last).set(name, { version: Number(version), round: Number(round) })
      versions.push(Number(version))
    }
    const { store } = await openSqliteStore({ path, clock, log })
    for (const [name, { version, round }] of last) {
      const found = await store.get('configmaps', { namespace: 'default', name })
      const foundVersion = Number(found?.metadata.resourceVersion)
      t.ok(foundVersion >= version, `${name}: version ${foundVersion} was answered up to ${version}`)
      if (foundVersion === version) t.equal(found?.data?.['round'], `${round}`)
    }
    versions.push(Number((await store.create('leases', aLease)).metadata.resourceVersion))
    await store.close()
  }
  t.ok(versions.length > 20, `${versions.length} writes were answered`)
  t.same(
    versions,
    [...new Set(versions)].sort((a, b) => a - b),
  )
})

test('a write the disk has no room for is refused, is not seen, and is not there later', async (t) => {
  const path = aPath()
  const limited = startWriter(
    ['-c', 'trap "" XFSZ; ulimit -f 600; exec "$0" "$@"', process.execPath, script, path, '20000'],
    'bash',
  )
  const lines = await linesUntilKilled(limited, { answers: 0, afterMs: 60_000 })
  const refused = lines.filter((line) => line.startsWith('refused')).map((line) => line.split(' '))
  t.ok(refused.length > 0, 'a write was refused')
  t.match(refused[0]?.slice(3).join(' '), /Cannot write to \S+: \w+/, 'with the reason')
  for (const [, seen, round] of refused)
    t.equal(Number(seen), Number(round) - 1, 'readers see what was answered before')
  const { store } = await openSqliteStore({ path, clock, log })
  t.teardown(() => store.close())
  for (const name of ['a', 'b', 'c']) {
    const answered = lines
      .filter((line) => line.startsWith(`${name} `))
      .at(-1)
      ?.split(' ')
    const found = await store.get('configmaps', { namespace: 'default', name })
    t.equal(found?.metadata.resourceVersion, answered?.[1])
  }
})

test('a store that cannot write reports that it writes again when it has written', async (t) => {
  const path = aPath()
  const own = quietLog(t, 'Store cannot write')
  const { store } = await openSqliteStore({ path, clock, log: own, statusDelayMs: 1 })
  t.teardown(() => store.close())
  const statusAt = (minute: number) => ({
    conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: `2026-01-01T00:0${minute}:00Z` } as const],
  })
  const metadata = { name: 'pi-1' }
  const node = await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata })
  const beat = (minute: number) => store.updateStatus('nodes', { ...node, metadata, status: statusAt(minute) })
  await beat(0)
  // Without a handler the signal that the kernel sends for a file that is too long ends the process. It stays: the signal comes late.
  process.on('SIGXFSZ', () => undefined)
  t.match(await whileDiskIsFull(() => store.create('pods', aPod('web'))), { message: /Cannot write/ })
  await beat(1)
  t.same(own.messages('info'), [], 'a heartbeat is not written')
  await store.create('pods', aPod('web'))
  t.same(own.messages('info'), ['Store writes again'])
})

/**
 * The error of `write` while no file of this process may grow beyond 4 KiB. The limit holds for the results of the tests too, where
 * standard output is a file: so nothing is asserted meanwhile.
 */
async function whileDiskIsFull(write: () => Promise<unknown>): Promise<unknown> {
  limitFileSize(4096)
  try {
    return await write().catch((error: unknown) => error)
  } finally {
    limitFileSize('unlimited')
  }
}

function limitFileSize(bytes: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', `${process.pid}`, `--fsize=${bytes}:`])
}

test('the error of a damaged store has a remedy, and its file is closed', async (t) => {
  const message = /is damaged: restore a backup .* or move it away: .* fills it from the checkpoints of the nodes/
  const [junk, spoiled] = [aPath(), aPath()]
  writeFileSync(junk, 'no database at all'.repeat(300))
  await t.rejects(openSqliteStore({ path: junk, clock, log }), { message })
  const { store } = await openSqliteStore({ path: spoiled, clock, log })
  await store.create('pods', aPod('web'))
  await store.close()
  const database = new Database(spoiled)
  database.exec('UPDATE objects SET body = substr(body, 1, 40)')
  database.close()
  for (const _ of [1, 2]) {
    await t.rejects(openSqliteStore({ path: spoiled, clock, log }), { message })
  }
})

const script = fileURLToPath(new URL('../../testing/store-writer.js', import.meta.url))

function startWriter(args: readonly string[], command = process.execPath): ChildProcess {
  const all = command === process.execPath ? [script, ...args] : args
  return spawn(command, all, { stdio: ['ignore', 'pipe', 'ignore'] })
}

/** What the writer answered; it is killed `afterMs` after this many answers, however slow the disk is. */
async function linesUntilKilled(
  writer: ChildProcess,
  { answers, afterMs }: { readonly answers: number; readonly afterMs: number },
): Promise<string[]> {
  let text = ''
  let isDying = false
  const stop = new AbortController()
  writer.stdout?.setEncoding('utf8').on('data', (part: string) => {
    text += part
    // The first line is that of a store that is open.
    if (isDying || text.split('\n').length < answers + 2) return
    isDying = true
    void clock.sleep(afterMs, stop.signal).then(() => writer.kill('SIGKILL'))
  })
  await new Promise<void>((resolve) => writer.once('close', () => resolve()))
  stop.abort()
  return text
    .slice(0, text.lastIndexOf('\n'))
    .split('\n')
    .filter((line) => line !== 'open')
}

function aPath(): string {
  files += 1
  return join(folder, `store-${files}.db`)
}

function aPod(name: string): Pod {
  const spec = { containers: [{ name: 'main', image: 'image:1' }] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec }
}

const aLease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { generateName: 'n', name: `n1`, namespace: 'kube-node-lease' },
} as const

const electionLease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    name: 'cert-manager',
    namespace: 'kube-system',
    labels: { app: 'cert-manager' },
    annotations: { note: 'kept' },
    finalizers: ['example.com/wait'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'of-a' }],
  },
  spec: { holderIdentity: 'one', renewTime: '2026-01-01T00:00:00.000000Z' },
} as const

test('a deletion does not wait as a status does, of whatever kind the object is', async (t) => {
  const { store } = await openSqliteStore({ path: aPath(), clock, log, statusDelayMs: 60_000 })
  t.teardown(store.close)
  const metadata = { name: 'web.1', namespace: 'default' }
  const creating = store.create('events', { apiVersion: 'v1', kind: 'Event', metadata, involvedObject: {} })
  await t.rejects(store.create('events', { apiVersion: 'v1', kind: 'Event', metadata, involvedObject: {} }))
  await creating
  await store.delete('events', { namespace: 'default', name: 'web.1' })
  t.equal((await store.list('events')).items.length, 0)
})
