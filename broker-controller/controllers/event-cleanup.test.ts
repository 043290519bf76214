import { test } from 'tap'
import type { Event } from '../../api/event.ts'
import { systemClock } from '../../daemon/clock.ts'
import { openLog } from '../../daemon/log.ts'
import { memoryStore } from '../store/memory-store.ts'
import { eventCleanup, expiredEvents } from './event-cleanup.ts'

const now = Date.parse('2026-01-01T02:00:00Z')

test('an event goes an hour after it last happened', async (t) => {
  const old = anEvent('old', { lastTimestamp: '2026-01-01T01:00:00Z' })
  const young = anEvent('young', { firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T01:00:01Z' })
  const series = anEvent('series', {
    lastTimestamp: '2026-01-01T00:00:00Z',
    series: { count: 2, lastObservedTime: '2026-01-01T01:59:00.000000Z' },
  })
  const undated = anEvent('undated', {})
  const gone = expiredEvents([young, old, series, undated], now, { lifetimeMs: 3_600_000, max: 10, maxPerHost: 10 })
  t.same(
    gone.map(({ metadata }) => metadata.name),
    ['undated', 'old'],
  )
})

test('of too many events the oldest go', async (t) => {
  const events = [30, 10, 20].map((minute) => anEvent(`at-${minute}`, { lastTimestamp: `2026-01-01T01:${minute}:00Z` }))
  const gone = expiredEvents(events, now, { lifetimeMs: 3_600_000, max: 1, maxPerHost: 10 })
  t.same(
    gone.map(({ metadata }) => metadata.name),
    ['at-10', 'at-20'],
  )
})

test('a node with too many events loses its own, and no others', async (t) => {
  const at = (minute: number, host: string) => {
    const time = `2026-01-01T01:${minute}:00Z`
    return anEvent(`${host}-${minute}`, { lastTimestamp: time, source: { host } })
  }
  const events = [at(10, 'calm'), ...[11, 12, 13, 14].map((minute) => at(minute, 'loud')), at(15, 'calm')]
  const settings = { lifetimeMs: 3_600_000, max: 4, maxPerHost: 2 }
  const names = (gone: readonly Event[]) => gone.map(({ metadata }) => metadata.name)
  t.same(names(expiredEvents(events, now, settings)), ['loud-11', 'loud-12'])
  t.same(names(expiredEvents(events, now, { ...settings, max: 3 })), ['calm-10', 'loud-11', 'loud-12'])
})

test('the loop removes what is old from the store and keeps the rest', async (t) => {
  const stop = new AbortController()
  const clock = { ...systemClock, wallMs: () => now, sleep: async () => stop.abort() }
  const store = memoryStore({ clock })
  await store.create('events', anEvent('old', { lastTimestamp: '2026-01-01T01:00:00Z' }))
  await store.create('events', anEvent('young', { lastTimestamp: '2026-01-01T01:50:00Z' }))
  const log = openLog({ level: 'warn', format: 'text', write: (line) => t.fail(line) })
  await eventCleanup({ store, clock, log }).run(stop.signal)
  t.same(
    (await store.list('events')).items.map(({ metadata }) => metadata.name),
    ['young'],
  )
})

test('a store that does not answer once does not end the loop', async (t) => {
  const stop = new AbortController()
  let rounds = 0
  const sleep = async () => {
    if (++rounds === 2) stop.abort()
  }
  const clock = { ...systemClock, wallMs: () => now, sleep }
  const kept = memoryStore({ clock })
  await kept.create('events', anEvent('old', { lastTimestamp: '2026-01-01T01:00:00Z' }))
  const list: typeof kept.list = async (...of) => {
    if (rounds === 0) throw new Error('it is away')
    return kept.list(...of)
  }
  const lines: string[] = []
  const log = openLog({ level: 'warn', format: 'text', write: (line) => lines.push(line) })
  await eventCleanup({ store: { ...kept, list }, clock, log }).run(stop.signal)
  t.match(lines, [/Old events not removed.*it is away/])
  t.same((await kept.list('events')).items, [])
})

function anEvent(name: string, more: Partial<Event>): Event {
  return { apiVersion: 'v1', kind: 'Event', metadata: { name, namespace: 'default' }, involvedObject: {}, ...more }
}
