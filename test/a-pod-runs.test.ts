/** One pod's whole life on real parts: kubectl, controller, MQTT, agent, Docker and back, and through every restart. */
import { test } from 'tap'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image, removeAllContainers, runningNames } from './support/pods.ts'
import { eventually } from './support/wait.ts'

test('a pod runs, and outlives the agent, the controller and both', async (t) => {
  const { docker, controller: first, controllerAgain, startAgent, startReady } = await joinedFleet(t)
  const [agent] = await startReady()

  await first.kubectlWith(podManifest({ name: 'web', image }), 'apply', '-f', '-')
  await first.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  const wide = await first.kubectl('get', 'pods', '-o', 'wide')
  t.match(wide, /web\s+1\/1\s+Running\s+0\s+\S+\s+\d+\.\d+\.\d+\.\d+\s+pi-1/, 'kubectl shows it running, and where')
  const described = await eventually('its events arrive', async () => {
    const description = await first.kubectl('describe', 'pod', 'web')
    const texts = ['Started container main', 'Successfully assigned default/web to pi-1']
    return texts.every((text) => description.includes(text)) && description
  })
  t.match(described, /Node: +pi-1/, 'and why it is there')
  const before = await containerOf(first, 'web')

  agent.kill('SIGKILL')
  await agent.ended
  const [second] = await startReady()
  await first.kubectlWith(podManifest({ name: 'beside', image }), 'apply', '-f', '-')
  await first.kubectl('wait', '--for=condition=Ready', 'pod/beside', '--timeout=80s')
  t.same(await containerOf(first, 'web'), before, 'an agent killed and started again adopts it')

  first.program.kill('SIGKILL')
  await first.program.ended
  const back = await controllerAgain()
  await eventually('the node reports to the new controller', async () => {
    const lease = await back.tryKubectl('get', 'lease', 'pi-1', '-n', 'kube-node-lease')
    return lease.code === 0
  })
  await back.nodesReady('pi-1')
  await back.kubectl('delete', 'pod', 'beside', '--timeout=80s', '--grace-period=1')
  t.same(await containerOf(back, 'web'), before, 'a controller killed and started again still has it')

  await back.program.stop()
  await second.stop()
  // As after a power cut with a new card in the machine's Docker.
  await removeAllContainers(docker)
  const alone = await startAgent()
  await eventually('the pod is back with no controller to ask', async () =>
    (await runningNames(docker)).some((name) => name.includes('_web_')),
  )

  const last = await controllerAgain()
  await eventually('the controller learns of the new container', async () => {
    const now = await containerOf(last, 'web')
    return now.ready && now.containerID !== before.containerID
  })

  await last.kubectl('delete', 'pod', 'web', '--timeout=80s', '--grace-period=1')
  await eventually('nothing of it is left', async () => (await runningNames(docker)).length === 0)
  t.equal(await alone.stop(), 0, 'the agent ends in order')
  t.equal(await last.program.stop(), 0, 'and so does the controller')
})

type Seen = { readonly containerID: string; readonly ready: boolean; readonly restartCount: number }

/** The container as kubectl shows it: its id, its start time, how often it was started. */
async function containerOf(controller: Controller, pod: string): Promise<Seen> {
  const object = JSON.parse(await controller.kubectl('get', 'pod', pod, '-o', 'json'))
  return object.status.containerStatuses[0]
}
