import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { memoryStore } from './memory-store.ts'
import {
  openRevocationList,
  revocationsIn,
  revocationsKey,
  revoke,
  revokeIfNode,
  withAllOf,
  withRevoked,
} from './revocations.ts'
import type { Store } from './store.ts'

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

const listOf = (...lines: readonly string[]) => ({
  apiVersion: 'v1' as const,
  kind: 'ConfigMap' as const,
  metadata: { ...revocationsKey },
  data: { revoked: lines.join('\n') },
})

test('lines may be indented, spaced and empty; of two with one date the last counts', async (t) => {
  const list = revocationsIn(
    listOf('', `  2026-01-01T00:00:00Z   ${user}\tLost `, '   ', `2026-01-01T00:00:00Z ${user} Stolen`),
  )
  t.same([...list.values()], [{ user, beforeMs: Date.parse('2026-01-01T00:00:00Z'), reason: 'Stolen' }])
  t.match(revocationsIn(listOf(`  2026-01-01T00:00:00Z  ${user}  Lost`)).get(user), { reason: 'Lost' })
})

test('what others are revoked for stays on the list for two years', async (t) => {
  const nowMs = Date.parse('2026-06-01T00:00:00Z')
  const keptMs = 2 * 366 * 24 * 3600_000
  const at = (ms: number) => new Date(ms).toISOString()
  const before = listOf(
    `${at(nowMs - keptMs)} system:node:ended Sold`,
    `${at(nowMs - keptMs + 1000)} system:node:old Sold`,
  )
  t.same([...revocationsIn(withRevoked(before, user, 'Stolen', nowMs)).keys()], ['system:node:old', user])
})

test('a deleted node is revoked; the deletion of another object revokes no node', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  await revokeIfNode({ store, clock }, 'pods', 'pi-3')
  t.equal(await store.get('configmaps', revocationsKey), undefined)
  await revokeIfNode({ store, clock }, 'nodes', 'pi-3')
  t.match(revocationsIn(await store.get('configmaps', revocationsKey)).get(user), { reason: 'NodeDeleted' })
})

test('a list that another process creates meanwhile is added to; another error is passed on', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  await revoke({ store, clock }, 'system:node:pi-1', 'Lost')
  let reads = 0
  const late: Store = {
    ...store,
    get: async (...args) => (reads++ === 0 ? undefined : store.get(...args)),
  }
  await revoke({ store: late, clock }, user, 'Stolen')
  t.same([...revocationsIn(await store.get('configmaps', revocationsKey)).keys()], ['system:node:pi-1', user])
  const broken: Store = { ...store, get: () => Promise.reject(new Error('the disk is full')) }
  await t.rejects(revoke({ store: broken, clock }, user, 'Stolen'), /the disk is full/)
})

test('changes of other ConfigMaps do not matter, a deleted list revokes no node, and a reason may be missing', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  await store.create('configmaps', listOf(`2026-01-01T00:00:00Z ${user}`))
  const list = await openRevocationList({ store, clock, log: quietLog(t) })
  const stop = new AbortController()
  const running = list.run(stop.signal)
  await clock.settle()
  let changes = 0
  list.onChange(() => changes++)
  t.equal(
    list.because(user, 0),
    `the certificate of ${user} was revoked: certificates from before 2026-01-01T00:00:00Z are no longer valid`,
  )
  t.equal(list.before(user), Date.parse('2026-01-01T00:00:00Z'))
  t.equal(list.before('system:node:pi-4'), undefined)
  const other = { namespace: 'kube-system', name: 'other' }
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: other })
  await store.delete('configmaps', other)
  await clock.settle()
  t.equal(changes, 0)
  await store.delete('configmaps', revocationsKey)
  await clock.settle()
  t.equal(list.because(user, 0), undefined)
  t.equal(changes, 1)
  stop.abort()
  await running
})
