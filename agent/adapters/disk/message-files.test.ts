import { mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { makeMessageFile, readMessageFile, writeEtcFile } from './message-files.ts'

const head = '127.0.0.1\tlocalhost\n'
const long = `${head}${'10.244.0.7\tweb.example\n'.repeat(100)}`
const short = `${head}10.244.0.8\tweb\n`

test('a hosts file in use stays the same file, and is whole at any moment', async (t) => {
  const folder = testFolder(t)
  const path = await writeEtcFile(folder, 'hosts', long)
  const { ino } = await stat(path)
  let isOver = false
  const seen = new Set<string>()
  const reading = (async () => {
    while (!isOver) seen.add((await readFile(path, 'utf8')).slice(0, head.length))
  })()
  for (let round = 0; round < 200; round++) {
    for (const text of [short, long]) {
      await writeEtcFile(folder, 'hosts', text)
      t.equal(await readFile(join(folder, '.etc-hosts'), 'utf8'), text)
    }
  }
  isOver = true
  await reading
  t.same([...seen], [head], 'never empty')
  t.match(await stat(path), { ino, mode: 0o100644 })
})

test('a text that has not changed is not written', async (t) => {
  const folder = testFolder(t)
  const path = await writeEtcFile(folder, 'hosts', short)
  await utimes(path, 1, 1)
  await writeEtcFile(folder, 'hosts', short)
  t.equal((await stat(path)).mtimeMs, 1_000)
  await writeEtcFile(folder, 'hosts', long)
  t.not((await stat(path)).mtimeMs, 1_000)
})

test('a message file is empty and writable by anyone, and replaces one of its attempt', async (t) => {
  const folder = join(testFolder(t), 'pod', 'main')
  const path = await makeMessageFile(folder, 0)
  t.equal(path, join(folder, '0'))
  t.match(await stat(path), { mode: 0o100666, size: 0 })
  await writeFile(path, 'from the attempt before a crash')
  t.equal(await readFile(await makeMessageFile(folder, 0), 'utf8'), '')
})

test('the files of this attempt and the last one are kept', async (t) => {
  const folder = join(testFolder(t), 'main')
  for (let attempt = 0; attempt < 4; attempt++) await makeMessageFile(folder, attempt)
  t.same((await readdir(folder)).sort(), ['2', '3'])
  await makeMessageFile(folder, 3)
  t.same((await readdir(folder)).sort(), ['2', '3'])
})

test('the last bytes of a message are read, and none of a file that does not exist', async (t) => {
  const folder = testFolder(t, { message: '0123456789' })
  const read = async (most: number) => (await readMessageFile(join(folder, 'message'), most)).toString()
  t.same(await Promise.all([4, 10, 11, 0].map(read)), ['6789', '0123456789', '0123456789', ''])
  t.equal((await readMessageFile(join(folder, 'none'), 4)).length, 0)
  await mkdir(join(folder, 'folder'))
  await t.rejects(readMessageFile(join(folder, 'folder'), 4), { code: 'EISDIR' })
})
