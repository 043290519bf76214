import { chmod, lstat, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { removeUnfinished, replaceFile } from './durable-file.ts'
import { testFolder } from './testing/test-folder.ts'

test('a file is replaced whole, readable by its owner only, and nothing is left beside it', async (t) => {
  const folder = testFolder(t, { state: 'old' })
  const path = join(folder, 'state')
  await replaceFile(path, 'new')
  t.equal(await readFile(path, 'utf8'), 'new')
  t.equal((await stat(path)).mode & 0o777, 0o600)
  await replaceFile(path, new Uint8Array([1, 2]), 0o644)
  t.equal((await stat(path)).mode & 0o777, 0o644)
  t.same(await readdir(folder), ['state'])
})

test('what a power cut left unfinished is removed, and nothing else', async (t) => {
  const folder = testFolder(t, { 'desired.json': 'old', 'desired.json.4711.new': 'half', 'notes.new': 'a user’s own' })
  await removeUnfinished(folder)
  t.same((await readdir(folder)).sort(), ['desired.json', 'notes.new'])
  await removeUnfinished(join(folder, 'none'))
})

test('links in the folder are replaced, and what they name stays as it was', async (t) => {
  const folder = testFolder(t, { victim: 'secret', shared: {} })
  const [victim, path] = [join(folder, 'victim'), join(folder, 'shared/state')]
  await chmod(victim, 0o640)
  const { uid, gid } = await stat(folder)
  for (const name of [path, `${path}.${process.pid}.new`]) await symlink(victim, name)
  await replaceFile(path, 'new', 0o600, { uid, gid })
  t.equal(await readFile(victim, 'utf8'), 'secret')
  t.equal((await stat(victim)).mode & 0o777, 0o640)
  const written = await lstat(path)
  t.equal(written.isFile(), true)
  t.same([written.uid, written.gid], [uid, gid])
  t.equal(await readFile(path, 'utf8'), 'new')
})

test('when it cannot be written the old content stays', async (t) => {
  const folder = testFolder(t, { state: { inner: 'x' } })
  await t.rejects(replaceFile(join(folder, 'state'), 'new'), { message: `Cannot write ${join(folder, 'state')}` })
  t.same(await readdir(folder), ['state'], 'what was written aside is removed')
  await writeFile(join(folder, 'other'), 'old')
  await t.rejects(replaceFile(join(folder, 'none', 'other'), 'new'), { cause: { code: 'ENOENT' } })
})
