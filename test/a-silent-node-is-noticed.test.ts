/** Without any last will a node is missed all the same: by its late heartbeat at first, and after the grace period by its lease. */
import { test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'
import { eventually } from './support/wait.ts'

test('a node that goes silent without a word is noticed by its late heartbeat', async (t) => {
  const { controller, startReady } = await joinedFleet(t, { controller: { nodeConnectionLossDebounce: '1h' } })
  const [agent] = await startReady()
  const ready = async () => {
    const node = JSON.parse(await controller.kubectl('get', 'node', 'pi-1', '-o', 'json'))
    return node.status.conditions.find((condition: { type: string }) => condition.type === 'Ready')
  }
  agent.kill('SIGKILL')
  await controller.kubectl('wait', '--for=condition=Ready=Unknown', 'node/pi-1', '--timeout=80s')
  t.match(await ready(), { reason: 'NodeStatusUnknown' })
  const message = 'Kubelet stopped posting node status.'
  await eventually('the grace period ends', async () => (await ready()).message === message)
  t.match(await ready(), { status: 'Unknown', reason: 'NodeStatusUnknown', message })
})
