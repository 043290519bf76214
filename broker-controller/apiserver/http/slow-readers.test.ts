import { EventEmitter } from 'node:events'
import { test } from 'tap'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { type FakeClock, fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { type Drain, slowReaders } from './slow-readers.ts'

const limits = { stalledMs: 30_000, mostBytes: 1000, crowdedMs: 1000 }

function aReader(writableLength: number) {
  const emitter = new EventEmitter()
  const reader = Object.assign(emitter, { writableLength, isEnded: false, destroy: () => undefined })
  reader.destroy = () => void Object.assign(reader, { isEnded: true })
  return reader satisfies Drain
}

function someReaders(clock: FakeClock) {
  const registry = metricsRegistry()
  const { drained } = slowReaders(clock, registry, limits)
  const wait = (bytes: number) => {
    const reader = aReader(bytes)
    void drained(reader, new AbortController().signal)
    return reader
  }
  return { wait, metrics: () => registry.text() }
}

test('a reader that takes nothing for half a minute is ended', async (t) => {
  const clock = fakeClock()
  const { wait, metrics } = someReaders(clock)
  const [frozen, slow] = [wait(10), wait(10)]
  await clock.advance(29_000)
  t.notOk(frozen.isEnded)
  slow.emit('drain')
  await clock.advance(1000)
  t.same([frozen.isEnded, slow.isEnded], [true, false])
  t.match(await metrics(), /slow_readers_ended_total 1\n(.*\n)*.*unread_bytes 0/)
})

test('many stalled readers cannot hold more than the limit; the oldest are ended first, and no more than needed', async (t) => {
  const clock = fakeClock()
  const { wait, metrics } = someReaders(clock)
  const old = Array.from({ length: 9 }, () => wait(100))
  await clock.advance(500)
  t.match(await metrics(), /unread_bytes 900/)
  const later = Array.from({ length: 3 }, () => wait(100))
  await clock.advance(600)
  t.equal(old.filter(({ isEnded }) => isEnded).length, 2)
  t.notOk(later.some(({ isEnded }) => isEnded))
  t.match(await metrics(), /unread_bytes 1000/)
})

test('a burst that all readers take within a second ends none, however large it is', async (t) => {
  const clock = fakeClock()
  const { wait } = someReaders(clock)
  const readers = Array.from({ length: 500 }, () => wait(200))
  await clock.advance(900)
  for (const reader of readers) reader.emit('drain')
  await clock.advance(60_000)
  t.notOk(readers.some(({ isEnded }) => isEnded))
})
