/** Without any last will a node is still missed: by the age of its lease, within a minute. */
import { join } from 'node:path'
import { test } from 'tap'
import { startDockerd } from './support/dockerd.ts'
import { joinFleet, startAgent, startController, temporaryFolder } from './support/fleet.ts'

test('a node that goes silent without a word is noticed by the age of its lease', async (t) => {
  const folder = await temporaryFolder(t)
  const docker = await startDockerd(t)
  const controller = await startController(t, {
    dataDir: join(folder, 'controller'),
    settings: { nodeConnectionLossDebounce: '1h' },
  })
  await joinFleet(controller, 'pi-1', join(folder, 'agent'))
  const agent = await startAgent(t, { dataDir: join(folder, 'agent'), dockerSocket: docker.socket })
  await agent.said('Node status posted')
  await controller.nodesReady('pi-1')
  agent.kill('SIGKILL')
  await controller.kubectl('wait', '--for=condition=Ready=Unknown', 'node/pi-1', '--timeout=80s')
  const node = JSON.parse(await controller.kubectl('get', 'node', 'pi-1', '-o', 'json'))
  const ready = node.status.conditions.find((condition: { type: string }) => condition.type === 'Ready')
  t.match(ready, { reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' })
})
