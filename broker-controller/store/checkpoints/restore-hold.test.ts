import { type Test, test } from 'tap'
import { learntByAnnotation } from '../../../api/node/node-checkpoint.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { eventRecorder } from '../event-recorder.ts'
import { memoryStore } from '../memory-store.ts'
import { checkpointWindowKey, openCheckpointWindow } from './checkpoint-window.ts'
import { type HoldFacts, heldAfterRestore, openRestoreHold } from './restore-hold.ts'

const minuteMs = 60_000

test('after a restore workloads wait for the nodes of the backup, StatefulSets until no checkpoint is accepted', async (t) => {
  const held = (facts: Partial<HoldFacts>) => heldAfterRestore({ isOpen: true, openMs: 0, nodes: 2, late: 1, ...facts })
  t.equal(held({}), 'all')
  t.equal(held({ openMs: 10 * minuteMs - 1 }), 'all')
  t.equal(held({ openMs: 10 * minuteMs }), 'statefulsets', 'a machine that is switched off holds up no Deployment')
  t.equal(held({ late: 0 }), 'statefulsets', 'a node that is not in the backup may run a pod of that name')
  t.equal(held({ late: 0, openMs: 20 * minuteMs }), 'statefulsets')
  t.equal(held({ isOpen: false }), 'none')
})

test('a store that began without nodes holds all workloads for ten minutes', async (t) => {
  const held = (openMs: number) => heldAfterRestore({ isOpen: true, openMs, nodes: 0, late: 0 })
  t.equal(held(10 * minuteMs - 1), 'all')
  t.equal(held(10 * minuteMs), 'none')
})

test('a store that was not restored holds nothing', async (t) => {
  const { hold } = await world(t, { isRestored: false })
  t.same([hold.holds('workloads'), hold.holds('statefulsets'), hold.describe()], [false, false, undefined])
  t.notOk(hold.holdsPod(aPod()))
})

test('the last checkpoint of a node of the backup releases workloads, the end of the window StatefulSets', async (t) => {
  const { hold, send, close, released } = await world(t, { nodes: ['pi-1', 'pi-2'], expected: [waits] })
  await send('pi-1')
  t.ok(hold.holds('workloads'))
  t.match(hold.describe(), /^Workloads wait for the checkpoints of pi-2 \('bramble-controller checkpoints' shows/)
  await send('pi-2')
  t.same([hold.holds('workloads'), hold.holds('statefulsets')], [false, true])
  t.match(hold.describe(), /^StatefulSets wait for checkpoints of nodes that are not in the backup/)
  t.equal(released.count, 1)
  await close()
  t.same([hold.holds('workloads'), hold.holds('statefulsets'), hold.describe()], [false, false, undefined])
  t.equal(released.count, 2)
})

test('a node of the backup that is deleted is not waited for', async (t) => {
  const { hold, store, clock } = await world(t, { nodes: ['pi-1'], expected: [waits] })
  t.ok(hold.holds('workloads'))
  await store.delete('nodes', { namespace: '', name: 'pi-1' })
  await clock.settle()
  t.notOk(hold.holds('workloads'))
})

test('ten minutes after the restore workloads continue without a node that is switched off', async (t) => {
  const { hold, clock, released } = await world(t, { nodes: ['pi-1'], expected: [waits] })
  await clock.advance(9 * minuteMs)
  t.ok(hold.holds('workloads'))
  await clock.advance(2 * minuteMs)
  t.same([hold.holds('workloads'), hold.holds('statefulsets'), released.count], [false, true, 1])
})

test('pending pods of the backup are not scheduled meanwhile, pods created since are', async (t) => {
  const { hold, send } = await world(t, { nodes: ['pi-1'], expected: [waits] })
  const pod = (creationTimestamp: string, kind?: string) =>
    aPod({
      metadata: {
        creationTimestamp,
        ...(kind && { ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'db', uid: 'u', controller: true }] }),
      },
    })
  const [before, after] = ['2025-12-31T23:59:00Z', '2026-01-01T00:01:00Z']
  t.same([hold.holdsPod(pod(before)), hold.holdsPod(pod(after))], [true, false])
  await send('pi-1')
  t.same([hold.holdsPod(pod(before)), hold.holdsPod(pod(before, 'ReplicaSet'))], [false, false])
  t.same([hold.holdsPod(pod(before, 'StatefulSet')), hold.holdsPod(pod(after, 'StatefulSet'))], [true, false])
})

test('claims and volumes of the backup stay unbound until no checkpoint is accepted, those created since do not', async (t) => {
  const { hold, send, close } = await world(t, { nodes: ['pi-1'], expected: [waits] })
  const held = () =>
    ['2025-12-31T23:59:00Z', '2026-01-01T00:01:00Z'].map((creationTimestamp) =>
      hold.holdsUnbound({ metadata: { creationTimestamp } }),
    )
  t.same(held(), [true, false])
  await send('pi-1')
  t.same(held(), [true, false])
  await close()
  t.same(held(), [false, false])
})

const waits = 'Workloads wait for the checkpoints of nodes'

type Given = {
  readonly nodes?: readonly string[]
  readonly isRestored?: boolean
  readonly expected?: readonly string[]
}

async function world(t: Test, { nodes = [], isRestored = true, expected = [] }: Given) {
  const clock = fakeClock()
  const log = quietLog(t, ...expected)
  const store = memoryStore({ clock })
  const origin = { id: 'store-2', acceptsCheckpoints: isRestored, sinceMs: Date.parse('2026-01-01T00:00:00Z') }
  for (const name of nodes) {
    const { resourceVersion: _, ...metadata } = aNode({ name }).metadata
    await store.create('nodes', { ...aNode({ name }), metadata })
  }
  const needs = { store, events: eventRecorder({ store, clock }), clock, log }
  const window = await openCheckpointWindow(needs, origin)
  const hold = await openRestoreHold(needs, window, origin)
  const released = { count: 0 }
  hold.onRelease(() => released.count++)
  const stop = new AbortController()
  const running = Promise.all([window, hold].map(({ run }) => run(stop.signal)))
  t.teardown(async () => {
    stop.abort()
    await clock.settle()
    await running
  })
  await clock.settle()
  return {
    clock,
    store,
    hold,
    released,
    async send(name: string) {
      const node = await store.get('nodes', { namespace: '', name })
      if (node === undefined) throw new Error(`no node ${name}`)
      const annotations = { ...node.metadata.annotations, [learntByAnnotation]: origin.id }
      await store.update('nodes', { ...node, metadata: { ...node.metadata, annotations } })
      await clock.settle()
    },
    async close() {
      const map = await store.get('configmaps', checkpointWindowKey)
      if (map === undefined) throw new Error('there is no ConfigMap')
      await store.update('configmaps', { ...map, data: { ...map.data, state: 'closed' } })
      await clock.settle()
    },
  }
}
