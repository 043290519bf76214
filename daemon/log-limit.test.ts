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

test('a period ends at its time, measured from its first line', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  await clock.advance(7_000)
  const limited = limitLog(log, clock, settings)
  limited.warn('a', 'One')
  await clock.advance(20_000)
  for (let i = 0; i < 3; i++) limited.warn('a', 'One')
  await clock.advance(39_999)
  t.same(log.messages('warn'), ['One', 'One'])
  await clock.advance(1)
  t.match(log.lines.at(-1), { message: 'Log lines suppressed', facts: { suppressed: 2, seconds: 60 } })
  t.equal(clock.sleepers, 0)
})

test('a line after a quiet period is in a new one', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const limited = limitLog(log, clock, settings)
  for (let i = 0; i < 2; i++) limited.info('a', 'One')
  await clock.advance(59_999)
  limited.info('b', 'Two')
  await clock.advance(1)
  for (let i = 0; i < 2; i++) limited.info('a', 'One')
  t.same(log.messages('info'), ['One', 'One', 'Two', 'One', 'One'])
  t.same(log.messages('warn'), [], 'nothing was suppressed')
})

test('the summary names the most suppressed keys first, and no others', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const limited = limitLog(log, clock, { ...settings, linesInTotal: 50 })
  for (const [key, lines] of [
    ['a', 3],
    ['b', 9],
    ['c', 2],
    ['d', 5],
    ['e', 4],
    ['f', 8],
    ['g', 7],
  ] as const) {
    for (let i = 0; i < lines; i++) limited.info(key, 'One')
  }
  limited.close()
  t.same(log.lines.at(-1)?.facts['most'], ['b: 7', 'f: 6', 'g: 5', 'd: 3', 'e: 2'])
  for (let i = 0; i < 3; i++) limited.info('k'.repeat(21), 'One')
  limited.info('quiet', 'One')
  limited.close()
  t.same(log.lines.at(-1)?.facts['most'], [`${'k'.repeat(20)}… (21 characters): 1`])
})

test('values that are short enough keep their type', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const facts = {
    none: null,
    nothing: undefined,
    isOn: true,
    list: [1, null],
    object: { a: 'b' },
    exact: { key: 'x'.repeat(10) },
  }
  limitLog(log, clock, settings).warn('a', 'Refused', facts)
  t.same(log.lines[0]?.facts, facts)
  t.equal(JSON.stringify(facts.exact).length, 20, 'an object of exactly the longest text')
})

test('unless given, a key has five lines of up to 200 characters, and all keys a hundred, in a minute', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const limited = limitLog(log, clock)
  for (let i = 0; i < 6; i++) limited.info('a', 'One', { text: 'x'.repeat(201) })
  t.equal(log.lines.length, 5)
  t.equal(log.lines[0]?.facts['text'], `${'x'.repeat(200)}… (201 characters)`)
  for (let key = 0; key < 200; key++) limited.info(`key-${key}`, 'One')
  t.equal(log.messages('info').length, 100)
  await clock.advance(60_000)
  t.match(log.lines.at(-1)?.facts, { suppressed: 106, seconds: 60 })
})
