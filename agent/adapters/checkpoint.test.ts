import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { Remembered } from '../pods/remembered.ts'
import { fileCheckpoint } from './checkpoint.ts'

const useless = 'Checkpoint of wanted pods cannot be used'

function remembered(version = 1, name = 'web'): Remembered {
  const { status: _, ...pod } = aPod({ name })
  return { desired: { epoch: 'one', version, pods: [pod] }, endings: { 'uid-of-job': { phase: 'Succeeded' } } }
}

function place(t: Test) {
  const path = join(t.testdir(), 'desired.json')
  return { path, open: (...errors: readonly string[]) => fileCheckpoint(path, quietLog(t, ...errors)) }
}

test('what was remembered is there for the next agent, and for root only', async (t) => {
  const { path, open } = place(t)
  t.equal(await open().load(), undefined, 'at first there is nothing')
  await open().save(remembered())
  t.same(await open().load(), remembered())
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

test('a damaged file is set aside, and never believed', async (t) => {
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

test('a folder that cannot be written is told', async (t) => {
  const checkpoint = fileCheckpoint('/proc/none/desired.json', quietLog(t))
  t.equal(await checkpoint.load(), undefined)
  await t.rejects(checkpoint.save(remembered()), /Cannot write/)
})
