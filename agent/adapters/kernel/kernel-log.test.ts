import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import type { KernelLine } from '../../health/kernel-log.ts'
import { until } from '../../testing/until.ts'
import { kernelLog, parseRecord } from './kernel-log.ts'

test('a record has its age and its text; one that a program wrote is skipped', async (t) => {
  t.same(parseRecord('3,339,5000000,-;mmc0: Timeout\\x5cwaiting', 7_500), {
    text: 'mmc0: Timeout\\waiting',
    ageMs: 2_500,
  })
  t.equal(parseRecord('13,340,5000001,c,caller=T1;written by a program', 7_500), undefined)
  t.equal(parseRecord(' SUBSYSTEM=mmc', 7_500), undefined)
})

test('a record has a priority, a number and a time, and programs have priorities from 8 on', async (t) => {
  t.same(parseRecord('7,1,5000000,-,caller=T1;', 5_000), { text: '', ageMs: 0 })
  t.equal(parseRecord('8,1,5000000,-;user', 5_000), undefined)
  t.equal(parseRecord('16,1,5000000,-;mail', 5_000), undefined)
  t.equal(parseRecord('x6,1,5000000,-;text', 5_000), undefined)
  t.equal(parseRecord('6,1,5000000,-', 5_000), undefined)
  t.match(parseRecord('6,1,9000000,-;later', 5_000), { ageMs: 0 })
  t.match(parseRecord('6,1,1,-;a;b', 5_000), { text: 'a;b' })
})

test('a fast log is read in parts, between which others run', async (t) => {
  const record = `6,1,1000000,-;${'x'.repeat(4081)}\n` // two in each read
  const root = testFolder(t, { dev: { kmsg: record.repeat(1_000) } })
  const [clock, log] = [fakeClock(), quietLog(t)]
  const kernel = kernelLog({ root, clock, log, uptimeMs: () => 9_000 })
  let lines = 0
  kernel.subscribe(() => lines++)
  const stopping = new AbortController()
  const done = kernel.run(stopping.signal)
  t.equal(lines, 800)
  await clock.advance(1)
  t.equal(lines, 1_000)
  stopping.abort()
  await done
})

test('a look reads what was logged since, also where the log failed before', async (t) => {
  const root = testFolder(t, { dev: { kmsg: '' } })
  const [clock, log] = [fakeClock(), quietLog(t)]
  const kernel = kernelLog({ root, clock, log, uptimeMs: () => 9_000 })
  const lines: string[] = []
  kernel.subscribe(({ text }) => lines.push(text))
  kernel.look()
  t.same(log.messages('debug'), [], 'before the start there is nothing to read')
  const stopping = new AbortController()
  const done = kernel.run(stopping.signal)
  await clock.advance(1)
  writeFileSync(join(root, 'dev/kmsg'), '6,1,1000000,-;first\n6,2,1000000,-;sec')
  kernel.look()
  t.same(lines, ['first'], 'a line is complete with its end')
  stopping.abort()
  await done
  writeFileSync(join(root, 'dev/kmsg'), '6,1,1000000,-;first\n6,2,1000000,-;second\n')
  kernel.look()
  t.same(lines, ['first'], 'after the end nothing is read')
})

test('a log that cannot be read is logged once, and tried again each minute', async (t) => {
  const root = testFolder(t, { dev: { kmsg: {} } })
  const [clock, log] = [fakeClock(), quietLog(t)]
  const kernel = kernelLog({ root, clock, log, uptimeMs: () => 9_000 })
  const lines: string[] = []
  kernel.subscribe(({ text }) => lines.push(text))
  const stopping = new AbortController()
  const done = kernel.run(stopping.signal)
  await clock.advance(60_000)
  t.equal(kernel.readable(), false)
  t.match(log.lines, [{ level: 'info', facts: { path: join(root, 'dev/kmsg'), error: { code: 'EISDIR' } } }])
  t.equal(log.lines.length, 1)
  rmSync(join(root, 'dev/kmsg'), { recursive: true })
  writeFileSync(join(root, 'dev/kmsg'), '6,1,1000000,-;first\n')
  await clock.advance(59_999)
  t.same(lines, [])
  await clock.advance(1)
  t.same([lines, kernel.readable()], [['first'], true])
  stopping.abort()
  await done
})

test('lines of a saved log are emitted once, and a machine without one does not fail', async (t) => {
  const root = testFolder(t)
  const [clock, log] = [fakeClock(), quietLog(t)]
  const kernel = kernelLog({ root, clock, log, uptimeMs: () => 9_000 })
  const lines: KernelLine[] = []
  kernel.subscribe((line) => lines.push(line))
  const stopping = new AbortController()
  const done = kernel.run(stopping.signal)
  await clock.advance(1)
  t.equal(kernel.readable(), false)
  t.equal(log.messages('info').length, 1)
  mkdirSync(join(root, 'dev'))
  writeFileSync(join(root, 'dev/kmsg'), '6,1,1000000,-;first\n SUBSYSTEM=x\n4,2,2000000,-;second\n')
  await clock.advance(120_000)
  t.equal(kernel.readable(), true)
  t.same(
    lines.map(({ text, ageMs }) => [text, ageMs]),
    [
      ['first', 8_000],
      ['second', 7_000],
    ],
  )
  stopping.abort()
  await done
})

test('lines of the kernel are emitted, and none that a program writes in its name', {
  skip: whyNoKernelLog(),
}, async (t) => {
  const kernel = kernelLog({ root: '/', clock: systemClock, log: quietLog(t) })
  const word = `bramble-test ${randomBytes(8).toString('hex')}`
  const lines: KernelLine[] = []
  kernel.subscribe((line) => lines.push(line))
  const stopping = new AbortController()
  const done = kernel.run(stopping.signal)
  t.teardown(() => stopping.abort())
  writeFileSync('/dev/kmsg', `<3>INFO: task ${word}:1 blocked for more than 120 seconds.\n`)
  await until('a line', () => lines.find(({ ageMs }) => ageMs >= 0), 60_000)
  // More looks than the kernel keeps lines.
  for (let looks = 0; looks < 100; looks++) kernel.look()
  t.equal(
    lines.find(({ text }) => text.includes(word)),
    undefined,
  )
  stopping.abort()
  await done
})

function whyNoKernelLog(): string | false {
  try {
    accessSync('/dev/kmsg', constants.R_OK | constants.W_OK)
    return process.getuid?.() === 0 ? false : 'only root reads /dev/kmsg'
  } catch {
    return 'no /dev/kmsg here'
  }
}
