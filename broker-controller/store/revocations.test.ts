import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { memoryStore } from './memory-store.ts'
import { openRevocationList, revocationsIn, revocationsKey, revoke, withAllOf } from './revocations.ts'

const user = 'system:node:pi-3'

test('certificates issued before are revoked, and listeners of the list are notified at once', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const list = await openRevocationList({ store, clock, log: quietLog(t) })
  const stop = new AbortController()
  const running = list.run(stop.signal)
  let changes = 0
  list.onChange(() => changes++)
  await clock.settle()
  t.equal(list.because(user, 0), undefined)
  await revoke({ store, clock }, user, 'NodeDeleted')
  await clock.settle()
  t.equal(changes, 1)
  const nowMs = Math.floor(clock.wallMs() / 1000) * 1000
  t.match(list.because(user, nowMs - 1), /system:node:pi-3 was revoked \(NodeDeleted\): certificates from before/)
  t.equal(list.because(user, nowMs), undefined, 'one that was issued afterwards is good')
  t.equal(list.because('system:node:pi-4', 0), undefined)
  await revoke({ store, clock }, user, 'Stolen')
  await clock.settle()
  t.match(list.because(user, nowMs), /Stolen/, 'also when it is revoked within the same second')
  stop.abort()
  await running
})

test('of two lines about one user the later date counts, wherever it stands', async (t) => {
  const list = (...lines: string[]) => ({
    apiVersion: 'v1' as const,
    kind: 'ConfigMap' as const,
    metadata: { ...revocationsKey },
    data: { revoked: lines.join('\n') },
  })
  const [early, late] = [`2026-01-01T00:00:00Z ${user} Lost`, `2026-02-01T00:00:00Z ${user} Stolen`]
  for (const one of [list(early, late), list(late, early), withAllOf(list(late), list(early))]) {
    t.match(revocationsIn(one).get(user), { reason: 'Stolen' })
  }
})

test('a list that is invalid after a manual edit is logged, and the previous one stays in force', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  await revoke({ store, clock }, user, 'Stolen')
  const log = quietLog(t, 'List of revoked certificates cannot be decoded; the previous one stays in force')
  const list = await openRevocationList({ store, clock, log })
  const stop = new AbortController()
  const running = list.run(stop.signal)
  await clock.settle()
  const map = await store.get('configmaps', revocationsKey)
  if (map === undefined) return t.fail()
  await store.update('configmaps', { ...map, data: { revoked: 'yesterday system:node:pi-9' } })
  await clock.settle()
  t.match(list.because(user, 0), /revoked/)
  t.equal(log.messages('error').length, 1)
  stop.abort()
  await running
})

test('a list that is invalid at the start admits no client', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  await store.create('configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...revocationsKey },
    data: { revoked: '2026-01-01T00:00:00Z' },
  })
  await t.rejects(openRevocationList({ store, clock, log: quietLog(t) }), { message: /not "TIME USER REASON"/ })
})

test('what is revoked so long that it has ended is forgotten', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  await revoke({ store, clock }, 'system:node:old', 'Sold')
  await clock.advance(3 * 366 * 24 * 3600_000)
  await revoke({ store, clock }, user, 'Stolen')
  t.same([...revocationsIn(await store.get('configmaps', revocationsKey)).keys()], [user])
})
