import { execFile } from 'node:child_process'
import { type FileHandle, mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { isRoot, skipWithout } from '../../../test/support/missing-parts.ts'
import { removeFolder } from './folder-removal.ts'
import { folderCounter, folderUsage } from './folder-usage.ts'
import { mountBind, unmount } from './mounts.ts'
import { entryOf, openFolder } from './open-folders.ts'

const run = promisify(execFile)
const skip = skipWithout('root', isRoot())
const megabyte = 1_000_000

async function temporary(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-removal-'))
  // rm(1) descends by descriptors.
  t.teardown(() => run('rm', ['-rf', folder]))
  return folder
}

/** A chain of folders below `path`, in each of which `fill` may put something. */
async function chain(path: string, depth: number, fill: (folder: FileHandle, level: number) => Promise<unknown>) {
  await mkdir(path)
  let folder = await openFolder(path)
  for (let level = 0; level < depth; level++) {
    await fill(folder, level)
    await mkdir(entryOf(folder, 'a-folder-with-a-long-name'))
    const next = await openFolder(entryOf(folder, 'a-folder-with-a-long-name'))
    await folder.close()
    folder = next
  }
  await writeFile(entryOf(folder, 'big'), Buffer.alloc(megabyte, 1))
  await folder.close()
}

test('a tree that is deeper than any path is counted, and removed', async (t) => {
  const top = join(await temporary(t), 'volume')
  await chain(top, 600, async (folder, level) => {
    if (level % 100 === 0) await mkdir(entryOf(folder, 'beside'))
  })
  const used = await folderUsage(top)
  t.equal(used?.inodesUsed, 1 + 600 + 6 + 1)
  t.ok((used?.usedBytes ?? 0) >= megabyte)
  t.equal(used?.incomplete, undefined)
  await removeFolder(top)
  t.equal(await folderUsage(top), undefined)
})

test('names that are not UTF-8 hide nothing, and hinder nothing', async (t) => {
  const top = join(await temporary(t), 'volume')
  await mkdir(top)
  const folder = await openFolder(top)
  await mkdir(entryOf(folder, 'd\xff'))
  await writeFile(entryOf(folder, 'd\xff/\xfe\x80'), Buffer.alloc(megabyte, 1))
  await writeFile(entryOf(folder, Buffer.from('größe').toString('latin1')), Buffer.alloc(megabyte, 1))
  await folder.close()
  const used = await folderUsage(top)
  t.equal(used?.inodesUsed, 4)
  t.ok((used?.usedBytes ?? 0) >= 2 * megabyte)
  await removeFolder(top)
  t.equal(await folderUsage(top), undefined)
})

test('many entries, and names the removal itself would take, go in the end', async (t) => {
  const folder = await temporary(t)
  const top = join(folder, 'volume')
  await chain(top, 80, async (handle, level) => {
    for (let file = 0; file < 5; file++) await writeFile(entryOf(handle, `file-${file}`), '')
    if (level === 0) for (const name of ['..deep-0', '..deep-1']) await mkdir(entryOf(handle, `${name}`))
    if (level === 0) await writeFile(entryOf(handle, '..deep-0/full'), '')
    if (level === 0) await writeFile(entryOf(handle, '..deep-2'), '')
  })
  await Promise.all(Array.from({ length: 3_000 }, (_, index) => writeFile(join(top, `many-${index}`), '')))
  await removeFolder(top)
  t.same(await readdir(folder), [])
  await removeFolder(top)
  await writeFile(top, 'a file')
  await removeFolder(top)
  t.same(await readdir(folder), [])
})

test('links are removed and not followed', async (t) => {
  const folder = await temporary(t)
  await mkdir(join(folder, 'precious'))
  await writeFile(join(folder, 'precious/file'), 'x')
  await mkdir(join(folder, 'volume'))
  await symlink(join(folder, 'precious'), join(folder, 'volume/link'))
  await symlink(join(folder, 'precious'), join(folder, 'top'))
  await removeFolder(join(folder, 'volume'))
  await removeFolder(join(folder, 'top'))
  t.equal(await readFile(join(folder, 'precious/file'), 'utf8'), 'x')
  t.same(await readdir(folder), ['precious'])
})

test('what is mounted in it stays, and the rest goes', { skip }, async (t) => {
  const folder = await temporary(t)
  const top = join(folder, 'volume')
  for (const name of ['precious', 'volume', 'volume/in', 'volume/in/mounted']) await mkdir(join(folder, name))
  await writeFile(join(folder, 'precious/file'), 'x')
  await writeFile(join(top, 'in/file'), 'x')
  // A bind mount of the same filesystem has the same device number.
  await mountBind(join(folder, 'precious'), join(top, 'in/mounted'))
  t.teardown(() => unmount(join(top, 'in/mounted')).catch(() => undefined))
  await t.rejects(removeFolder(top), { message: `Cannot remove ${top}: "mounted": Error: something is mounted there` })
  t.equal(await readFile(join(folder, 'precious/file'), 'utf8'), 'x')
  t.same(await readdir(join(top, 'in')), ['mounted'])
  await unmount(join(top, 'in/mounted'))
  await removeFolder(top)
  t.same(await readdir(folder), ['precious'])
})

test('a removal that takes long can be called off, and goes on the next time', async (t) => {
  const top = join(await temporary(t), 'volume')
  await chain(top, 200, async (folder) => await writeFile(entryOf(folder, 'file'), ''))
  const stopping = new AbortController()
  setImmediate(() => stopping.abort())
  await t.rejects(removeFolder(top, stopping.signal), { name: 'AbortError' })
  t.ok(await folderUsage(top))
  await removeFolder(top)
  t.equal(await folderUsage(top), undefined)
})

test('neither counting nor removing leaves a descriptor behind', async (t) => {
  const top = join(await temporary(t), 'volume')
  const open = async () => (await readdir('/proc/self/fd')).length
  await chain(top, 100, async () => undefined)
  const before = await open()
  await folderUsage(top)
  await folderUsage(top, 20)
  await removeFolder(top, AbortSignal.abort()).catch(() => undefined)
  t.equal(await open(), before)
  await removeFolder(top)
  t.equal(await open(), before)
})

test('a folder with more entries than are counted at a time is counted over several calls', async (t) => {
  const top = join(await temporary(t), 'volume')
  await mkdir(join(top, 'many/deep'), { recursive: true })
  for (let index = 0; index < 30; index++) await writeFile(join(top, `many/empty-${index}`), '')
  await writeFile(join(top, 'many/deep/big'), Buffer.alloc(megabyte, 1))
  const counter = folderCounter(10)
  t.teardown(() => counter.close())
  const answers = []
  for (let call = 0; call < 4; call++) answers.push(await counter.usage(top))
  t.match(answers[0], { inodesUsed: 10, incomplete: 'more than 10 entries, not all are counted yet' })
  t.match(answers[3], { inodesUsed: 34, incomplete: undefined })
  t.ok((answers[3]?.usedBytes ?? 0) >= megabyte)
  const next = await counter.usage(top)
  t.equal(next?.usedBytes, answers[3]?.usedBytes, 'the last whole count holds while the next one is under way')
  t.equal(next?.incomplete, undefined)
})

test('counts of folders that are not asked for any more are ended', async (t) => {
  const top = join(await temporary(t), 'volume')
  await chain(top, 100, async () => undefined)
  const open = async () => (await readdir('/proc/self/fd')).length
  const before = await open()
  const counter = folderCounter(10)
  await counter.usage(top)
  await counter.endRound()
  t.ok((await open()) > before, 'a paused count holds folders open')
  await counter.endRound()
  t.equal(await open(), before)
  await counter.usage(top)
  await counter.close()
  t.equal(await open(), before)
})

test('mounts that could not be read once are read again', async (t) => {
  const top = join(await temporary(t), 'volume')
  await mkdir(top)
  let isUnread = true
  const counter = folderCounter(10, async () => {
    if (isUnread) throw new Error('EMFILE')
    return []
  })
  await t.rejects(counter.usage(top), { message: 'EMFILE' })
  isUnread = false
  t.match(await counter.usage(top), { inodesUsed: 1 })
})
