import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import type { CheckpointData } from '../../pods/wanted/pod-checkpoint.ts'
import { fileCheckpoint, laterFormat, read } from './checkpoint.ts'

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
    (text: string) => text.replace('web', 'wob'),
    (text: string) => text.slice(0, text.length / 2),
    () => '',
    () => '\0'.repeat(100),
    (text: string) => text.replace('"format":1', '"format":2'),
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
  await writeFile(path, (await readFile(path, 'utf8')).replace('web', 'wob'))
  await checkpoint.keepCopy()
  t.equal((await stat(`${path}.copy`)).ino, ino)
  await checkpoint.save(remembered(2, 'other'))
  await checkpoint.keepCopy()
  t.match(await readFile(`${path}.copy`, 'utf8'), /"other"/)
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
  t.match(read(text), { desired: { epoch: 'one', pods: [{ metadata: { name: 'web', uid: 'uid-of-web' } }] } })
  const renamed = (content: unknown) => {
    const { desired } = content as { readonly desired: { readonly pods: readonly object[] } }
    return { desired: { ...desired, epoch: 'two' }, endings: {} }
  }
  const again = (content: unknown) => ({ ...(content as object), endings: { gone: { phase: 'Failed' } } })
  t.match(read(text, [renamed, again]), { desired: { epoch: 'two' }, endings: { gone: { phase: 'Failed' } } })
  t.throws(
    () => read(text.replace('"format":1', '"format":4'), [renamed, again]),
    /Format 4 is not supported; this version reads up to 3/,
  )
})

test('a file of a later agent is left alone, and the message names the remedy', async (t) => {
  const { path, open } = place(t)
  t.equal(await laterFormat(path), undefined)
  await open().save(remembered())
  t.equal(await laterFormat(path), undefined)
  const later = (await readFile(path, 'utf8')).replace('"format":1', '"format":2')
  await writeFile(path, later)
  t.match(await laterFormat(path), /later bramble-agent \(format 2; this one reads 1\)\. Install that version again/)
  await writeFile(path, later.slice(20))
  t.equal(await laterFormat(path), undefined, 'the writer of that is unknown')
})

test('whenever the power goes while it is written, there is the old state or the new one', async (t) => {
  const { path, open } = place(t)
  const [old, next] = [remembered(1, 'old'), remembered(2, 'new')]
  await open().save(old)
  const oldText = await readFile(path, 'utf8')
  await open().save(next)
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
