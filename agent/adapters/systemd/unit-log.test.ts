import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { unitLog } from './unit-log.ts'

test('the last lines of a unit are read from the journal, and again after half a minute', async (t) => {
  const clock = fakeClock()
  const calls: string[][] = []
  const run = async (file: string, args: readonly string[]) => {
    calls.push([file, ...args])
    return { code: 0, stdout: `first\n${'x'.repeat(5_000)}\n` }
  }
  const read = unitLog('docker.service', { clock, run })
  t.same(
    (await read()).map((line) => line.length),
    [5, 2_000, 0],
  )
  t.match(calls, [['journalctl', '--unit=docker.service', '--lines=20']])
  await clock.advance(29_999)
  await read()
  t.equal(calls.length, 1)
  await clock.advance(1)
  await read()
  t.equal(calls.length, 2)
})

test('a journal that cannot be read has no lines', async (t) => {
  const clock = fakeClock()
  t.same(await unitLog('a', { clock, run: async () => ({ code: 1, stdout: 'x' }) })(), [])
  t.same(await unitLog('a', { clock, run: () => Promise.reject(new Error('journalctl is not installed')) })(), [])
})
