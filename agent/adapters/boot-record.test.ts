import { test } from 'tap'
import { rebootedSince } from './boot-record.ts'

test('a new boot is noticed once, a first start and a restart are none', async (t) => {
  const directory = t.testdir({})
  t.equal(await rebootedSince(directory, 'boot-1'), false, 'we never ran here before')
  t.equal(await rebootedSince(directory, 'boot-1'), false, 'only the agent was started again')
  t.equal(await rebootedSince(directory, 'boot-2'), true)
  t.equal(await rebootedSince(directory, 'boot-2'), false)
})

test('a folder that takes no writes is no failure', async (t) => {
  t.equal(await rebootedSince('/nowhere/at/all', 'boot-1'), false)
})
