import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import type { CheckpointData } from '../../pods/wanted/pod-checkpoint.ts'
import { fileCheckpoint, laterFormat } from './checkpoint.ts'
import { readCheckpoint } from './pod-checkpoint/checkpoint-index.ts'

const useless = 'The checkpoint cannot be used'

function remembered(version = 1, name = 'web'): CheckpointData {
  const { status: _, ...pod } = aPod({ name })
  return { desired: { epoch: 'one', version, pods: [pod] }, endings: { 'uid-of-job': { phase: 'Succeeded' } } }
}

function place(t: Test) {
  const path = join(testFolder(t), 'desired.json')
  return { path, open: (...errors: readonly string[]) => fileCheckpoint(path, quietLog(t, ...errors)) }
}

test('what was remembered is there for the next agent, and for root only', async (t) => {
  const { path, open } = place(t)
  t.equal(await open().load(), undefined, 'at first there is nothing')
  const addresses = { 'uid-of-web': '10.244.1.2' }
  const observed = { id: 'a1', specHash: 'h', attempt: 2, image: 'app:1', imageID: 'docker://sha256:1', sandboxID: 'b' }
  const end = { state: 'exited', exitCode: 4, oomKilled: false, error: '', message: 'm' } as const
  const times = { createdAt: '2026-01-01T00:00:00Z', startedAt: '2026-01-01T00:00:01Z' }
  const ends = { 'uid-of-web': [{ name: 'main', ...observed, ...end, ...times }] }
  await open().save({ ...remembered(), addresses })
  t.same(await open().load(), { ...remembered(), addresses })
  const checkpoint = open()
  await checkpoint.load()
  await checkpoint.save({ ...remembered(), addresses, ends })
  t.same(await open().load(), { ...remembered(), addresses, ends })
  t.equal((await stat(path)).mode & 0o777, 0o600)
})

test('the same is not written twice', async (t) => {
  const { path, open } = place(t)
  const checkpoint = open()
  await checkpoint.save(remembered(1))
  const before = await stat(path)
  await checkpoint.save(remembered(2))
  const again = open()
  await again.load()
  await again.save(remembered(3))
  t.equal((await stat(path)).ino, before.ino, 'a new number of the message is nothing new')
  await again.save(remembered(3, 'other'))
  t.not((await stat(path)).ino, before.ino)
})

test('the next agent has the store of the message, also where another store wants the same', async (t) => {
  const { open } = place(t)
  const { desired, endings } = remembered()
  const checkpoint = open()
  for (const store of ['store-1', 'store-2']) await checkpoint.save({ desired: { ...desired, store }, endings })
  t.equal((await open().load())?.desired.store, 'store-2')
})

test('a damaged file is renamed and never used', async (t) => {
  for (const damage of [
    (text: string) => text.replace('one', 'two'),
    (text: string) => text.slice(0, text.length / 2),
    () => '',
    () => '\0'.repeat(100),
    (text: string) => text.replace('"format":2', '"format":3'),
  ]) {
    const { path, open } = place(t)
    await open().save(remembered())
    const damaged = damage(await readFile(path, 'utf8'))
    await writeFile(path, damaged)
    const checkpoint = open(useless)
    t.equal(await checkpoint.load(), undefined)
    t.equal(await readFile(`${path}.unreadable`, 'utf8'), damaged)
    await checkpoint.save(remembered())
    t.same(await open().load(), remembered())
  }
})

test('a card that spoils the file, or loses it, has the copy still, which is marked as possibly old', async (t) => {
  for (const harm of [(path: string) => writeFile(path, 'spoiled'), (path: string) => rm(path)]) {
    const { path, open } = place(t)
    await open().keepCopy()
    await open().save(remembered())
    await open().keepCopy()
    t.equal((await stat(`${path}.copy`)).mode & 0o777, 0o600)
    t.same(await open().load(), remembered(), 'the file itself is not marked')
    await harm(path)
    const checkpoint = open(useless)
    t.same(await checkpoint.load(), { ...remembered(), mayBeOld: true })
    await checkpoint.save(remembered())
    t.same(await open().load(), remembered())
    await writeFile(path, 'spoiled')
    await writeFile(`${path}.copy`, 'spoiled, too')
    t.equal(await open(useless).load(), undefined)
  }
})

test('a copy is written when it differs, and never of what is spoiled', async (t) => {
  const { path, open } = place(t)
  const checkpoint = open()
  await checkpoint.save(remembered())
  await checkpoint.keepCopy()
  const { ino } = await stat(`${path}.copy`)
  await checkpoint.keepCopy()
  t.equal((await stat(`${path}.copy`)).ino, ino)
  await writeFile(path, (await readFile(path, 'utf8')).replace('one', 'two'))
  await checkpoint.keepCopy()
  t.equal((await stat(`${path}.copy`)).ino, ino)
  await checkpoint.save(remembered(2, 'other'))
  await checkpoint.keepCopy()
  await writeFile(path, 'spoiled')
  t.match(await open(useless).load(), { desired: { pods: [{ metadata: { name: 'other' } }] }, mayBeOld: true })
})

test('a pod with unknown fields of a later agent affects no other pod, and is still desired', async (t) => {
  const { path, open } = place(t)
  const { desired, endings } = remembered()
  const strange = { ...aPod({ name: 'strange' }), spec: { containers: 'none' } }
  const content = JSON.stringify({ desired: { ...desired, pods: [strange, ...desired.pods] }, endings })
  const sha256 = createHash('sha256').update(content).digest('hex')
  await writeFile(path, `${JSON.stringify({ format: 1, sha256 })}\n${content}\n`)
  const found = await open().load()
  t.match(found, { desired: { pods: [{ metadata: { name: 'web' } }], misread: [{ uid: 'uid-of-strange' }] }, endings })
  t.equal(found?.desired.pods.length, 1)
  if (found === undefined) return
  await open().save(found)
  t.same(await open().load(), found)
})

test('a file that cannot even be read is logged, and left where it is', async (t) => {
  const { path, open } = place(t)
  await mkdir(path)
  t.equal(await open('The checkpoint cannot be read').load(), undefined)
  t.ok((await stat(path)).isDirectory())
})

test('a folder that cannot be written is logged', async (t) => {
  const checkpoint = fileCheckpoint('/proc/none/desired.json', quietLog(t))
  t.equal(await checkpoint.load(), undefined)
  await t.rejects(checkpoint.save(remembered()), /Cannot write/)
})

const stored = fileURLToPath(new URL('../../../../agent/testing/checkpoints/desired-format-1.json', import.meta.url))

test('what an earlier agent wrote is read by each later one', async (t) => {
  const text = await readFile(stored, 'utf8')
  t.match(readCheckpoint(text), { desired: { epoch: 'one', pods: [{ metadata: { name: 'web', uid: 'uid-of-web' } }] } })
  const renamed = (content: unknown) => {
    const { desired } = content as { readonly desired: { readonly pods: readonly object[] } }
    return { desired: { ...desired, epoch: 'two' }, endings: {} }
  }
  const again = (content: unknown) => ({ ...(content as object), endings: { gone: { phase: 'Failed' } } })
  t.match(readCheckpoint(text, new Map(), [renamed, again]), {
    desired: { epoch: 'two' },
    endings: { gone: { phase: 'Failed' } },
  })
  t.throws(
    () => readCheckpoint(text.replace('"format":1', '"format":4'), new Map(), [renamed, again]),
    /Format 4 is not supported; this version reads up to 3/,
  )
})

test('a file of a later agent is left alone, and the message names the remedy', async (t) => {
  const { path, open } = place(t)
  t.equal(await laterFormat(path), undefined)
  await open().save(remembered())
  t.equal(await laterFormat(path), undefined)
  const later = (await readFile(path, 'utf8')).replace('"format":2', '"format":3')
  await writeFile(path, later)
  t.match(await laterFormat(path), /later bramble-agent \(format 3; this one reads 2\)\. Install that version again/)
  await writeFile(path, later.slice(20))
  t.equal(await laterFormat(path), undefined, 'the writer of that is unknown')
})

test('whenever the power goes while it is written, there is the old state or the new one', async (t) => {
  const { path, open } = place(t)
  const [old, next] = [remembered(1, 'old'), remembered(2, 'new')]
  await open().save(old)
  const oldText = await readFile(path, 'utf8')
  const oldContents = await contentsOf(path)
  await open().save(next)
  // They are removed once the new index is on disk. Of the new contents some are there before it, or half of one aside.
  for (const [name, text] of oldContents) await writeFile(`${path}.contents/${name}`, text)
  await writeFile(`${path}.contents/${'0'.repeat(32)}.4711.new`, 'half')
  const nextText = await readFile(path, 'utf8')
  const aside = `${path}.4711.new`
  const lengths = Array.from({ length: 40 }, (_, index) => Math.floor((nextText.length * index) / 39))
  const unsynced = lengths.flatMap((length) => [
    nextText.slice(0, length),
    nextText.slice(0, length).padEnd(nextText.length, '\0'), // its length was on disk before its content
    oldText.slice(0, length) + nextText.slice(length), // and blocks of what was there before
  ])
  for (const text of ['', ...unsynced]) {
    await writeFile(path, oldText)
    await writeFile(aside, text)
    t.same(await open().load(), old, 'what was not renamed counts for nothing')
  }
  await writeFile(path, nextText)
  t.same(await open().load(), next)
  // A card that lies about what it has written: what does not fit its checksum is never believed.
  for (const text of unsynced.filter((one) => one !== nextText && one !== oldText)) {
    await writeFile(path, text)
    t.equal(await open(useless).load(), undefined)
  }
})

async function contentsOf(path: string): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(`${path}.contents`)
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(`${path}.contents/${name}`, 'utf8')] as const)),
  )
}

/** A pod that mounts five ConfigMaps of 1 MB and a Secret, and `others` beside it. */
function withLargeContents(...others: readonly string[]): CheckpointData {
  const { desired, endings } = remembered()
  const metadata = (name: string) => ({ name, namespace: 'default' })
  const configMaps = [1, 2, 3, 4, 5].map((number) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: metadata(`large-${number}`),
    data: { text: String(number).repeat(1_000_000) },
  }))
  const secrets = [{ apiVersion: 'v1', kind: 'Secret', metadata: metadata('key'), data: { key: 'a'.repeat(400_000) } }]
  const pods = [...desired.pods, ...others.map((name) => aPod({ name }))]
  return { desired: { ...desired, pods, configMaps, secrets } as CheckpointData['desired'], endings }
}

/** The size of each file of the checkpoint, by name and inode: a file that was written has another one. */
async function filesOf(path: string): Promise<ReadonlyMap<string, number>> {
  const folder = join(path, '..')
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  return new Map(
    await Promise.all(
      files.map(async (file): Promise<[string, number]> => {
        const { ino, size } = await stat(file)
        return [`${file} ${ino}`, size]
      }),
    ),
  )
}

async function bytesWritten(path: string, write: () => Promise<unknown>): Promise<number> {
  const before = await filesOf(path)
  await write()
  const after = await filesOf(path)
  return [...after].reduce((sum, [file, size]) => (before.has(file) ? sum : sum + size), 0)
}

test('a change of one pod writes that pod and an index, whatever the others have', async (t) => {
  const { path, open } = place(t)
  const checkpoint = open()
  t.ok((await bytesWritten(path, () => checkpoint.save(withLargeContents()))) > 5_000_000, 'once')
  t.ok((await bytesWritten(path, () => checkpoint.keepCopy())) > 5_000_000, 'and once for the copy')
  const again = open()
  await again.load()
  // Decoded objects are new ones: the next message has no object of the last one.
  const saved = await bytesWritten(path, () => again.save(structuredClone(withLargeContents('other'))))
  t.ok(saved < 10_000, `${saved} bytes`)
  const copied = await bytesWritten(path, () => again.keepCopy())
  t.ok(copied < 10_000, `${copied} bytes`)
  t.same(await open().load(), withLargeContents('other'))
  const removed = await bytesWritten(path, () => again.save(withLargeContents()))
  t.ok(removed < 10_000, `${removed} bytes`)
})

test('with 100 pods a change of one writes no other, and the status of one that ends no other status', async (t) => {
  const { path, open } = place(t)
  const checkpoint = open()
  const names = Array.from({ length: 100 }, (_, number) => `pod-${number}`)
  const message = 'x'.repeat(4000)
  const endings = Object.fromEntries(names.map((name) => [name, { phase: 'Failed', message } as const]))
  await checkpoint.save({ ...withLargeContents(...names), endings })
  const ended = { ...endings, other: { phase: 'Failed', message: 'y'.repeat(4000) } as const }
  const written = await bytesWritten(path, () =>
    checkpoint.save({ ...withLargeContents(...names, 'other'), endings: ended }),
  )
  t.ok(written < 30_000, `${written} bytes`)
})

test('contents that nothing names any more are removed, also those of an interrupted write', async (t) => {
  const { path, open } = place(t)
  const checkpoint = open()
  await checkpoint.save(withLargeContents())
  await writeFile(`${path}.contents/${'0'.repeat(32)}`, 'written before the power went')
  await writeFile(`${path}.contents/${'1'.repeat(32)}.4711.new`, 'half')
  await checkpoint.save(remembered(2, 'other'))
  t.same((await readdir(`${path}.contents`)).length, 2, 'the pod and the ending of a job')
  t.same(await open().load(), remembered(2, 'other'))
})

test('contents are readable by root only', async (t) => {
  const { path, open } = place(t)
  await open().save(withLargeContents())
  await open().keepCopy()
  for (const folder of [`${path}.contents`, `${path}.copy.contents`]) {
    t.equal((await stat(folder)).mode & 0o777, 0o700)
    for (const name of await readdir(folder)) t.equal((await stat(join(folder, name))).mode & 0o777, 0o600)
  }
})

test('a content that the card damaged is taken from the copy, and written again with the next change', async (t) => {
  const { path, open } = place(t)
  await open().save(withLargeContents())
  await open().keepCopy()
  for (const damage of ['', 'half']) {
    for (const name of await readdir(`${path}.contents`)) await writeFile(`${path}.contents/${name}`, damage)
    const checkpoint = open()
    t.same(await checkpoint.load(), withLargeContents(), 'equal hashes are equal contents, so it is not marked as old')
    await checkpoint.save(withLargeContents())
    await rm(`${path}.copy.contents`, { recursive: true })
    t.same(await open().load(), withLargeContents())
    await rm(`${path}.copy`)
    await open().keepCopy()
  }
})

test('a content that is damaged in both makes the checkpoint unusable, and the next save writes all', async (t) => {
  const { path, open } = place(t)
  await open().save(withLargeContents())
  await open().keepCopy()
  for (const folder of [`${path}.contents`, `${path}.copy.contents`]) {
    for (const name of await readdir(folder)) await writeFile(join(folder, name), 'half')
  }
  const checkpoint = open(useless)
  t.equal(await checkpoint.load(), undefined)
  await checkpoint.save(withLargeContents())
  t.same(await open().load(), withLargeContents())
})

test('the checkpoint of an earlier agent is brought to this format with the next change', async (t) => {
  const { path, open } = place(t)
  await writeFile(path, await readFile(stored))
  const checkpoint = open()
  const found = await checkpoint.load()
  t.match(found, {
    desired: { pods: [{ metadata: { name: 'web' } }] },
    endings: { 'uid-of-job': { phase: 'Succeeded' } },
  })
  if (found === undefined) return
  await checkpoint.save(found)
  t.equal(JSON.parse((await readFile(path, 'utf8')).split('\n')[0] ?? '').format, 2)
  t.same(await open().load(), found)
})

test('the names of contents are there for the next agent, unless it decodes contents differently', async (t) => {
  const { path, open } = place(t)
  const { desired, endings } = remembered()
  const misread = [{ kind: 'Pod', namespace: 'default', name: 'x', uid: 'u', why: 'spec', content: 'p-x' }] as const
  await open().save({ desired: { ...desired, names: { pods: ['p-web'] }, misread: [...misread] }, endings })
  t.match(await open().load(), { desired: { names: { pods: ['p-web'] }, misread: [{ content: 'p-x' }] } })
  const [, content = ''] = (await readFile(path, 'utf8')).split('\n')
  const other = JSON.stringify({ ...JSON.parse(content), decoder: 'of a version that has another field' })
  const sha256 = createHash('sha256').update(other).digest('hex')
  await writeFile(path, `${JSON.stringify({ format: 2, sha256 })}\n${other}\n`)
  t.match(await open().load(), { desired: { names: undefined, misread: [{ name: 'x', content: undefined }] } })
})
