/** Without any last will a node is still missed: by the age of its lease, within a minute. */
import { test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'

test('a node that goes silent without a word is noticed by the age of its lease', async (t) => {
  const { controller, startReady } = await joinedFleet(t, { controller: { nodeConnectionLossDebounce: '1h' } })
  const [agent] = await startReady()
  agent.kill('SIGKILL')
  await controller.kubectl('wait', '--for=condition=Ready=Unknown', 'node/pi-1', '--timeout=80s')
  const node = JSON.parse(await controller.kubectl('get', 'node', 'pi-1', '-o', 'json'))
  const ready = node.status.conditions.find((condition: { type: string }) => condition.type === 'Ready')
  t.match(ready, { reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' })
})
