import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { aNode, aPod } from '../../api/testing/builders.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../store/memory-store.ts'
import { deviceID } from './device-ids.ts'
import { watchedFleet } from './watched-fleet.ts'

test('pods that run mark the device of their node, and are counted once', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const fleet = watchedFleet({ store, clock, log: quietLog(t) })
  const stop = new AbortController()
  const running = fleet.loops.map(({ run }) => run(stop.signal))
  t.teardown(async () => {
    stop.abort()
    await Promise.all(running)
  })
  await fleet.listed
  const changed = new Set<string>()
  fleet.onChange((id) => void changed.add(id))
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await setImmediate()
  }
  const id = deviceID('pi.2')
  await store.create('nodes', aNode({ name: 'pi.2', ready: 'True' }))
  await settle()
  t.same([...changed], [id])
  t.equal(fleet.node(id)?.metadata.name, 'pi.2')

  changed.clear()
  for (const nodeName of ['pi.2', 'elsewhere']) {
    const pod = aPod({ name: `on-${nodeName}`, nodeName })
    await store.create('pods', { ...pod, status: { ...pod.status, phase: 'Running' } })
  }
  await settle()
  t.same([...changed], [id], 'a node that is not there has no device')
  t.match(fleet.counts(), { ready: 1, total: 1, podsRunning: 2, podsWaiting: 0 })
  t.equal(fleet.podsRunning('pi.2'), 1)

  await store.delete('nodes', { namespace: '', name: 'pi.2' })
  await settle()
  t.equal(fleet.node(id), undefined)
  t.match(fleet.counts(), { ready: 0, total: 0, podsRunning: 2 })
})
