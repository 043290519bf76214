import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { openBootRecord } from './boot-record.ts'
import { recordStart } from './start-record.ts'

test('a new boot is noticed once, a first start and a restart are none', async (t) => {
  const directory = t.testdir({})
  const rebooted = async (bootID: string) => (await openBootRecord(directory, bootID)).rebooted
  t.equal(await rebooted('boot-1'), false, 'we never ran here before')
  t.equal(await rebooted('boot-1'), false, 'only the agent was started again')
  t.equal(await rebooted('boot-2'), true)
  t.equal(await rebooted('boot-2'), false)
})

test('boots that did not last are counted, back to the last one that did', async (t) => {
  const directory = t.testdir({})
  writeFileSync(join(directory, 'boot-id'), 'boot-0\n')
  const boot = (name: string) => openBootRecord(directory, name)
  await (await boot('boot-1')).lasts()
  t.equal((await boot('boot-1')).shortBoots, 1, 'of one before nobody knows that it lasted')
  t.equal((await boot('boot-2')).shortBoots, 0)
  t.equal((await boot('boot-3')).shortBoots, 1)
  for (const name of ['boot-4', 'boot-5']) await boot(name)
  const last = await boot('boot-5')
  t.equal(last.shortBoots, 3)
  await last.lasts()
  await last.lasts()
  t.equal((await boot('boot-6')).shortBoots, 0)
  for (let more = 7; more < 30; more++) await boot(`boot-${more}`)
  t.ok(readFileSync(join(directory, 'boot-id'), 'utf8').length < 200, 'the file stays small')
})

test('a folder that takes no writes is no failure', async (t) => {
  const record = await openBootRecord('/nowhere/at/all', 'boot-1')
  t.equal(record.rebooted, false)
  await record.lasts()
})

test("the agent's starts are remembered until the machine is restarted, as far as they matter", async (t) => {
  const path = join(t.testdir({}), 'bramble', 'id.starts')
  t.same(await recordStart(path, 1_000.4), [1_000])
  t.same(await recordStart(path, 2_000), [1_000, 2_000])
  for (let more = 0; more < 20; more++) await recordStart(path, 3_000)
  t.equal((await recordStart(path, 4_000))?.length, 10)
  t.equal(await recordStart('/proc/nowhere/starts', 1), undefined, 'where nothing can be written nothing is remembered')
})
