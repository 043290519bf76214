import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { KernelLine } from '../health/kernel-log.ts'
import { until } from '../testing/until.ts'
import { kernelLog, parseRecord } from './kernel-log.ts'

test('a record tells its level, who wrote it, its age and its text', async (t) => {
  t.same(parseRecord('3,339,5000000,-;mmc0: Timeout\\x5cwaiting', 7_500), {
    level: 3,
    facility: 0,
    sequence: 339,
    text: 'mmc0: Timeout\\waiting',
    ageMs: 2_500,
  })
  t.match(parseRecord('13,340,5000001,c,caller=T1;written by a program', 7_500), { level: 5, facility: 1 })
  t.equal(parseRecord(' SUBSYSTEM=mmc', 7_500), undefined)
})

test('lines of a saved log are told once, and a machine without one is no trouble', async (t) => {
  const root = t.testdir({})
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

test('a line the kernel writes is heard', { skip: whyNoKernelLog() }, async (t) => {
  const kernel = kernelLog({ root: '/', clock: systemClock, log: quietLog(t) })
  const word = `bramble-test ${randomBytes(8).toString('hex')}`
  const lines: KernelLine[] = []
  kernel.subscribe((line) => lines.push(line))
  const stopping = new AbortController()
  const done = kernel.run(stopping.signal)
  t.teardown(() => stopping.abort())
  writeFileSync('/dev/kmsg', `<4>${word}\n`)
  const line = await until('the line', () => lines.find(({ text }) => text === word), 60_000)
  t.match(line, { level: 4, facility: 1 })
  t.ok(line.ageMs < 120_000, `it is ${line.ageMs} ms old`)
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
