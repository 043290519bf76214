import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { writeEtcFile } from './message-files.ts'

const head = '127.0.0.1\tlocalhost\n'
const long = `${head}${'10.244.0.7\tweb.example\n'.repeat(100)}`
const short = `${head}10.244.0.8\tweb\n`

test('a hosts file in use stays the same file, and is whole at any moment', async (t) => {
  const folder = t.testdir({})
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
