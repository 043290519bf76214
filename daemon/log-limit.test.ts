import { test } from 'tap'
import { cutText, limitLog } from './log-limit.ts'
import { fakeClock } from './testing/fake-clock.ts'
import { quietLog } from './testing/quiet-log.ts'

const settings = { linesPerKey: 2, linesInTotal: 5, periodMs: 60_000, longestText: 20 }

test('a key writes its lines, and the rest of the period is one line with counts', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const limited = limitLog(log, clock, settings)
  for (let i = 0; i < 1000; i++) limited.warn('node-1/ForeignTopic', 'MQTT refused', { node: 'node-1' })
  limited.info('node-2/ForeignTopic', 'MQTT refused', { node: 'node-2' })
  t.same(log.messages('warn'), ['MQTT refused', 'MQTT refused'])
  t.same(log.messages('info'), ['MQTT refused'])
  await clock.advance(60_000)
  const facts = { suppressed: 998, seconds: 60, most: ['node-1/ForeignTopic: 998'] }
  t.match(log.lines.at(-1), { level: 'warn', message: 'Log lines suppressed', facts })
  t.equal(log.lines.length, 4)
  limited.warn('node-1/ForeignTopic', 'MQTT refused')
  t.equal(log.lines.length, 5, 'a new period, a new line')
})

test('keys without number write no more than the total, and are not kept', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const limited = limitLog(log, clock, settings)
  for (let i = 0; i < 10_000; i++) limited.warn(`address-${i}`, 'TLS handshake failed')
  t.equal(log.lines.length, 5)
  await clock.advance(60_000)
  t.match(log.lines.at(-1)?.facts, { suppressed: 9995, most: [] })
})

test('nothing suppressed: no summary and no timer', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const limited = limitLog(log, clock, settings)
  limited.debug('a', 'One')
  t.equal(clock.sleepers, 0)
  await clock.advance(120_000)
  limited.close()
  t.equal(log.lines.length, 1)
})

test('closing writes the count at once and leaves no timer', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const limited = limitLog(log, clock, settings)
  for (let i = 0; i < 3; i++) limited.info('a', 'One')
  t.equal(clock.sleepers, 1)
  limited.close()
  t.equal(clock.sleepers, 0)
  t.match(log.lines.at(-1), { message: 'Log lines suppressed', facts: { suppressed: 1 } })
})

test('long values are cut, in texts, errors, lists and objects', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const long = 'x'.repeat(60_000)
  limitLog(log, clock, settings).warn('a', 'Refused', {
    node: 'node-1',
    topic: long,
    error: new Error(long),
    problems: Array.from({ length: 100 }, () => long),
    object: { long },
    code: 5,
  })
  const cut = `${'x'.repeat(20)}… (60000 characters)`
  const { problems, object, ...facts } = log.lines[0]?.facts ?? {}
  t.same(facts, { node: 'node-1', topic: cut, error: cut, code: 5 })
  t.same(
    problems,
    Array.from({ length: 10 }, () => cut),
  )
  t.ok(String(object).length < 60)
  t.equal(cutText('short', 5), 'short')
})
