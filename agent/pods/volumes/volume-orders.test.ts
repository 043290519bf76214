import { type Test, test } from 'tap'
import type { Pool } from '../../../api/storage/pools.ts'
import type { NodeVolumeOrder } from '../../../api/storage/volume-messages.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { fakeControlPlane } from '../../testing/fake-control-plane.ts'
import { volumeOrders } from './volume-orders.ts'
import { VolumeError } from './volume-store.ts'
import type { PoolState } from './volume-trash.ts'

const minute = 60_000
const anOrder = (uid: string): NodeVolumeOrder => ({ kind: 'trash', volume: uid, uid, pool: 'p', folder: uid })

/** A node that has volumes, and obeyed these stores before. */
function aNode(t: Test, known: readonly string[] = []) {
  const clock = fakeClock()
  const controlPlane = fakeControlPlane()
  const discarded: string[] = []
  const mounted = new Set<string>()
  const saved: (readonly string[])[] = []
  const followed: (readonly string[])[] = []
  let released = () => {}
  let [age, pool] = [0, { id: 'p', capacityBytes: 2 ** 40, availableBytes: 2 ** 39 }]
  let state: PoolState = { id: 'p', path: '/pool' }
  const events: string[] = []
  const present = cell<readonly Pool[] | undefined>(undefined)
  const orders = volumeOrders({
    trash: {
      async discard({ uid }) {
        if (mounted.has(uid)) throw new VolumeError('it is mounted')
        discarded.push(uid)
      },
      shareKinds: async () => ['nfs'],
      isEmpty: async () => false,
      async age(elapsedMs) {
        age += elapsedMs
      },
      poolStates: () => [state],
      poolUsage: async () => [pool],
      volumeUsage: async () => [],
      trashed: async () =>
        discarded.map((uid) => ({ uid, pool: 'p', volume: uid, folder: uid, keptSeconds: 0, keepSeconds: 60 })),
    },
    moves: {
      async follow(orders) {
        followed.push(orders.map(({ kind, uid }) => `${kind} ${uid}`))
        return orders.map(({ uid, move }) => ({ uid, id: move?.id ?? '', held: true }))
      },
      onChange: () => undefined,
    },
    onRelease: (listener) => {
      released = listener
    },
    stores: { load: async () => known, save: async (stores) => void saved.push(stores) },
    controlPlane,
    event: ({ reason }) => void events.push(reason),
    writes: { pools: present },
    clock,
    log: quietLog(t),
  })
  const stop = new AbortController()
  const running = orders.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  let version = 0
  return {
    ...{ clock, discarded, mounted, saved, orders, events, present, followed },
    findPool(found: PoolState) {
      state = found
    },
    age: () => age,
    release: () => released(),
    fill: () => {
      pool = { ...pool, availableBytes: 2 ** 38 }
    },
    reports: controlPlane.storage,
    async receive(
      store: string,
      uids: readonly string[],
      message: { epoch?: string; version?: number; orders?: readonly NodeVolumeOrder[] } = {},
    ) {
      orders.listener.store(store)
      version += 1
      orders.listener.volumes({ epoch: 'e', version, store, orders: uids.map(anOrder), ...message })
      await clock.advance(100)
    },
  }
}

test('the orders of the known store are followed, and reported', async (t) => {
  const { receive, discarded, reports } = aNode(t, ['a'])
  await receive('a', ['v1', 'v2'])
  t.same(discarded, ['v1', 'v2'])
  t.match(reports.at(-1), { done: ['v1', 'v2'], refused: [], trash: [{ uid: 'v1' }, { uid: 'v2' }] })
  await receive('a', ['v2'])
  t.same(discarded, ['v1', 'v2'], 'once')
  t.match(reports.at(-1), { done: ['v2'] })
  await receive('a', [])
  t.match(reports.at(-1), { done: [], refused: [] })
})

test('orders for folders on shares are followed as those for pools', async (t) => {
  const { receive, discarded, followed } = aNode(t, ['a'])
  const share = { kind: 'nfs' as const, server: 'nas', path: '/export' }
  const onShare = (uid: string, kind: string) => ({ ...anOrder(uid), kind, pool: '', share })
  await receive('a', [], { orders: [onShare('v1', 'share-trash'), onShare('v2', 'share-delete')] })
  t.same(discarded, ['v1', 'v2'])
  t.same(followed.at(-1), [])
})

test('an order that a pod holds up is followed when the pod has given up its volumes', async (t) => {
  const { receive, clock, discarded, mounted, followed, release } = aNode(t, ['a'])
  mounted.add('v1')
  await receive('a', ['v1'])
  t.same(discarded, [])
  mounted.delete('v1')
  release()
  await clock.settle()
  t.same(discarded, ['v1'])
  const count = followed.length
  release()
  await clock.settle()
  t.equal(followed.length, count, 'nothing waits')
})

test('orders for moves are followed for a known store alone, again until they are gone, and reported', async (t) => {
  const { receive, clock, followed, reports } = aNode(t, ['a'])
  const order = { ...anOrder('v1'), kind: 'hold', move: { id: '0123abcd', round: 1 } }
  await receive('b', [], { orders: [order] })
  t.same(followed.at(-1), [], 'the store is new')
  t.same(reports.at(-1)?.moves, [])
  await receive('a', [], { orders: [anOrder('v2'), order] })
  t.same(followed.at(-1), ['hold v1'])
  t.match(reports.at(-1), { done: ['v2'], moves: [{ uid: 'v1', id: '0123abcd', held: true }] })
  const count = followed.length
  await clock.advance(minute)
  t.ok(followed.length > count)
  await receive('a', [], { orders: [] })
  t.same([followed.at(-1), reports.at(-1)?.moves], [[], []])
})

test('another store is obeyed after ten minutes, and the one before not again', async (t) => {
  const { receive, clock, discarded, reports, saved } = aNode(t, ['a'])
  await receive('b', ['v1'])
  await clock.advance(9 * minute)
  t.same(discarded, [])
  t.match(reports.at(-1), { refused: [{ uid: 'v1', reason: /when it has known it for 10 minutes/ }] })
  await clock.advance(minute)
  t.same([discarded, saved], [['v1'], [['a', 'b']]])
  await receive('a', ['v2'])
  await clock.advance(60 * minute)
  t.same(discarded, ['v1'])
  t.match(reports.at(-1), { refused: [{ uid: 'v2', reason: /^the order is from an earlier store/ }] })
})

test('a volume that a pod has mounted stays until the pod is gone', async (t) => {
  const { receive, clock, discarded, mounted, reports } = aNode(t, ['a'])
  mounted.add('v1')
  await receive('a', ['v1', 'v2'])
  t.same(discarded, ['v2'])
  t.match(reports.at(-1), { done: ['v2'], refused: [{ uid: 'v1', reason: 'it is mounted' }] })
  mounted.clear()
  await clock.advance(minute)
  t.same(discarded, ['v2', 'v1'])
  t.match(reports.at(-1), { done: ['v1', 'v2'], refused: [] })
})

test('an older message, and one of a controller that is gone, are not followed', async (t) => {
  const { receive, clock, discarded, mounted, orders } = aNode(t, ['a'])
  await receive('a', [], { version: 5 })
  await receive('a', ['v1'], { version: 4 })
  t.same(discarded, [])
  mounted.add('v2')
  await receive('a', ['v2'], { version: 6 })
  orders.listener.volumesOff()
  mounted.clear()
  await clock.advance(5 * minute)
  t.same(discarded, [])
})

test('a store that was tried for a minute is not obeyed later, and takes nothing from the one before', async (t) => {
  const { receive, clock, discarded, saved, orders } = aNode(t, ['a'])
  await receive('b', ['v1'])
  await clock.advance(minute)
  orders.listener.disconnected()
  await clock.advance(60 * minute)
  await receive('a', ['v2'])
  t.same([discarded, saved], [['v2'], []])
})

test('sizes are reported at most once a minute, and what is in the trash gets older by the time of the agent', async (t) => {
  const { clock, reports, fill, age } = aNode(t)
  await clock.advance(5 * minute)
  t.equal(reports.length, 1)
  fill()
  await clock.advance(minute)
  t.equal(reports.length, 2)
  t.match(reports.at(-1), { pools: [{ availableBytes: 2 ** 38 }] })
  clock.setWall(0)
  await clock.advance(60 * minute)
  t.ok(age() >= 60 * minute && age() <= 66 * minute)
})

test('a disk that is removed while the agent runs, or comes back, is noticed within a minute', async (t) => {
  const { clock, events, present, findPool } = aNode(t)
  await clock.advance(minute)
  t.same([present.get()?.[0]?.id, events], ['p', []], 'it was there from the beginning')
  findPool({ missing: 'its identity is missing' })
  await clock.advance(3 * minute)
  t.same([present.get()?.[0]?.id, events], [undefined, ['PoolMissing']], 'one Event')
  findPool({ id: 'p', path: '/pool' })
  await clock.advance(minute)
  t.same([present.get()?.[0]?.id, events], ['p', ['PoolMissing', 'PoolFound']])
})
