/** Without any last will a node is missed all the same: by its late heartbeat at first, and after the grace period by its lease. */
import { test } from 'tap'
import { killedAndSeen, nextHeartbeat } from './support/failure-times.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { eventually } from './support/wait.ts'

/** Heartbeats every 10 s, 3.5 s of tolerance, and a check every 0.5 s: docs/mqtt.md. */
const promisedSeconds = 15
/** For other work on the machine. */
const roomSeconds = 5

test('a node that goes silent without a word is noticed by its late heartbeat', async (t) => {
  const { controller, startReady } = await joinedFleet(t, { controller: { nodeConnectionLossDebounce: '1h' } })
  const [agent] = await startReady()
  const ready = async () => {
    const node = JSON.parse(await controller.kubectl('get', 'node', 'pi-1', '-o', 'json'))
    return node.status.conditions.find((condition: { type: string }) => condition.type === 'Ready')
  }
  await nextHeartbeat(controller, 'pi-1')
  const { seconds, message: first } = await killedAndSeen(controller, 'pi-1', agent)
  t.comment(`Unknown ${seconds.toFixed(1)} s after the last heartbeat`)
  t.ok(seconds <= promisedSeconds + roomSeconds, `${promisedSeconds} s are promised: ${seconds.toFixed(1)} s`)
  t.equal(first, 'The heartbeat of the node is late.')
  t.match(await ready(), { reason: 'NodeStatusUnknown' })
  const message = 'Kubelet stopped posting node status.'
  await eventually('the grace period ends', async () => (await ready()).message === message)
  t.match(await ready(), { status: 'Unknown', reason: 'NodeStatusUnknown', message })
})
