import { type Test, test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type AccessCheck, checkAccessMs, heldAccess, isDue } from './held-access.ts'

function held(t: Test) {
  const clock = fakeClock()
  const registry = metricsRegistry()
  const now = { version: 1, revision: 1, versions: 0 }
  const store = { version: async () => `${now.version + 0 * now.versions++}` }
  const access = { revision: () => now.revision }
  const answers = heldAccess({ store, access, clock, registry, log: limitLog(quietLog(t), clock) })
  const stopping = new AbortController()
  const running = answers.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  const asks: string[] = []
  const refused = new Map<string, ApiError>()
  const check = (key: string, dependsOn: AccessCheck['dependsOn'], untilMs?: number): AccessCheck => ({
    key,
    dependsOn,
    ...(untilMs !== undefined && { untilMs }),
    async ask() {
      asks.push(key)
      const error = refused.get(key)
      if (error !== undefined) throw error
    },
  })
  /** What is asked in the next round. */
  const round = async () => {
    asks.length = 0
    await clock.advance(checkAccessMs)
    // Each question is followed by a turn of the event loop.
    for (let turn = 0; turn < 3 * asks.length + 10; turn++) await new Promise(setImmediate)
    return [...asks].sort()
  }
  return { ...answers, clock, now, check, round, refused, registry }
}

const forbidden = new ApiError('Forbidden', 'no role allows it')

test('a question is due when it is new, when what it depends on has changed, and from its end on', async (t) => {
  const ask = async () => undefined
  const due = (dependsOn: AccessCheck['dependsOn'], changed: { objects: boolean; roles: boolean }, isNew = false) =>
    isDue({ check: { key: 'k', dependsOn, untilMs: 1_000, ask }, isNew }, changed, 999)
  const [objects, roles, nothing] = [
    { objects: true, roles: false },
    { objects: false, roles: true },
    { objects: false, roles: false },
  ]
  t.same([due('objects', objects), due('roles', objects), due('time', objects)], [true, false, false])
  t.same([due('objects', roles), due('roles', roles), due('time', roles)], [false, true, false])
  t.same([due('time', nothing, true), due('roles', nothing), due('objects', nothing)], [true, false, false])
  t.equal(isDue({ check: { key: 'k', dependsOn: 'time', untilMs: 1_000, ask }, isNew: false }, nothing, 1_000), true)
  t.equal(isDue({ check: { key: 'k', dependsOn: 'time', ask }, isNew: false }, nothing, 1e15), false)
})

test('a thousand answers at rest are asked for once, and equal ones together', async (t) => {
  const { hold, check, round, now } = held(t)
  const all = Array.from({ length: 1_000 }, (_, at) =>
    hold([check('token', 'objects'), check(`right ${at % 3}`, 'roles')]),
  )
  t.same(await round(), ['right 0', 'right 1', 'right 2', 'token'])
  t.same(await round(), [])
  now.version += 1
  t.same(await round(), ['token'], 'an object changed')
  now.revision += 1
  t.same(await round(), ['right 0', 'right 1', 'right 2'], 'a role changed')
  t.same(await round(), [])
  t.notOk(all.some(({ lost }) => lost.aborted))
  for (const one of all) one.release()
  now.version += 1
  now.revision += 1
  const versions = now.versions
  t.same(await round(), [])
  t.equal(now.versions, versions, 'without answers not even the store is asked')
})

test('an answer ends when its right or its identity is gone, and others stay', async (t) => {
  const { hold, check, round, now, refused, registry } = held(t)
  const first = hold([check('a', 'objects'), check('right', 'roles')])
  const second = hold([check('b', 'objects'), check('right', 'roles')])
  const third = hold([check('b', 'objects'), check('other right', 'roles')])
  await round()
  refused.set('a', new ApiError('Unauthorized', 'serviceaccounts "a" not found'))
  now.version += 1
  await round()
  t.same(
    [first, second, third].map(({ lost }) => lost.aborted),
    [true, false, false],
  )
  refused.set('right', forbidden)
  now.revision += 1
  await round()
  t.same(
    [first, second, third].map(({ lost }) => lost.aborted),
    [true, true, false],
  )
  t.match(registry.text(), /bramble_api_revoked_streams_total 2/)
})

test('an answer that began while its right went is asked for', async (t) => {
  const { hold, check, round, refused } = held(t)
  hold([check('right', 'roles')])
  await round()
  refused.set('right', forbidden)
  const late = hold([check('right', 'roles')])
  await round()
  t.equal(late.lost.aborted, true)
})

test('an answer ends when its credentials expire, though nothing changes', async (t) => {
  const { hold, check, round, refused, clock } = held(t)
  const { lost } = hold([check('token', 'objects', clock.wallMs() + 3 * checkAccessMs)])
  t.same(await round(), ['token'])
  refused.set('token', new ApiError('Unauthorized', 'service account token has expired'))
  t.same(await round(), [])
  t.same(await round(), ['token'])
  t.equal(lost.aborted, true)
})

test('while it cannot be found out an answer goes on, and is asked for again', async (t) => {
  const { hold, check, round, refused } = held(t)
  const { lost } = hold([check('token', 'objects')])
  refused.set('token', new ApiError('ServiceUnavailable', 'etcd does not answer'))
  t.same(await round(), ['token'])
  t.same(await round(), ['token'])
  t.equal(lost.aborted, false)
  refused.clear()
  t.same(await round(), ['token'])
  t.same(await round(), [])
})
