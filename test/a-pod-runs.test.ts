/** One pod's whole life on real parts: kubectl, controller, MQTT, agent, Docker and back, and through every restart. */
import { test } from 'tap'
import type { TestDockerd } from './support/dockerd.ts'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

test('a pod runs, and outlives the agent, the controller and both', async (t) => {
  const { docker, controller: first, controllerAgain, startAgent, startReady } = await joinedFleet(t)
  const [agent] = await startReady()

  await first.kubectlWith(podManifest({ name: 'web', image }), 'apply', '-f', '-')
  await first.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  const wide = await first.kubectl('get', 'pods', '-o', 'wide')
  t.match(wide, /web\s+1\/1\s+Running\s+0\s+\S+\s+\d+\.\d+\.\d+\.\d+\s+pi-1/, 'kubectl shows it running, and where')
  const described = await eventually('its events arrive', async () => {
    const said = await first.kubectl('describe', 'pod', 'web')
    return said.includes('Started') && said
  })
  t.match(described, /Successfully assigned default\/web to pi-1/, 'and why it is there')
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
  t.same(await containerOf(back, 'web'), before, 'a controller killed and started again knows it')

  await back.program.stop()
  await second.stop()
  await removeAll(docker)
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

test('what a pod asks for is what it gets', async (t) => {
  const { docker, controller, startReady } = await joinedFleet(t)
  await startReady()
  const apply = (text: string) => controller.kubectlWith(text, 'apply', '-f', '-')

  await apply(podManifest({ name: 'once', image, command: ['true'], spec: { restartPolicy: 'Never' } }))
  await controller.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/once', '--timeout=80s')

  await apply(podManifest({ name: 'crash', image, command: ['sh', '-c', 'exit 3'] }))
  await eventually('it crashes, is started again, and waits', async () =>
    /CrashLoopBackOff/.test(await controller.kubectl('get', 'pod', 'crash')),
  )

  await apply(podManifest({ name: 'huge', image, container: { resources: { requests: { memory: '100Ti' } } } }))
  const pending = await eventually('the scheduler says why it fits nowhere', async () => {
    const events = await controller.kubectl('get', 'events', '--field-selector=involvedObject.name=huge')
    return events.includes('FailedScheduling') && events
  })
  t.match(pending, /0\/1 nodes are available: 1 Insufficient memory/)

  await controller.kubectl('cordon', 'pi-1')
  await apply(podManifest({ name: 'later', image }))
  await eventually('a cordoned node takes no pods', async () =>
    /were unschedulable/.test(await controller.kubectl('describe', 'pod', 'later')),
  )
  await controller.kubectl('uncordon', 'pi-1')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/later', '--timeout=80s')

  await controller.kubectl('delete', 'pod', 'later', '--force', '--grace-period=0')
  t.equal((await controller.tryKubectl('get', 'pod', 'later')).code, 1, 'by force it is forgotten at once')
  await eventually('and soon ended, though nobody waits for it', async () =>
    (await runningNames(docker)).every((name) => !name.includes('_later_')),
  )

  const refused = await controller.tryKubectl('run', 'no-image', '--image=not/here:1', '--image-pull-policy=Never')
  t.equal(refused.code, 0, refused.stderr)
  await eventually('a missing image is named', async () =>
    /ErrImageNeverPull/.test(await controller.kubectl('get', 'pod', 'no-image')),
  )
  await controller.kubectl('delete', 'pods', '--all', '--grace-period=1', '--timeout=80s')
  t.same(await runningNames(docker), [], 'nothing is left over')
})

/** What runs, by Docker's own word. */
async function runningNames({ docker }: TestDockerd): Promise<readonly string[]> {
  const running = await docker.listContainers()
  return running.flatMap((container) => container.Names)
}

/** As after a power cut with a new card in the machine's Docker: nothing is left of any container. */
async function removeAll({ docker }: TestDockerd): Promise<void> {
  const all = await docker.listContainers({ all: true })
  await Promise.all(all.map(({ Id }) => docker.getContainer(Id).remove({ force: true })))
}

type Seen = { readonly containerID: string; readonly ready: boolean; readonly restartCount: number }

/** The container kubectl tells of: its id, its start time, how often it was started. */
async function containerOf(controller: Controller, pod: string): Promise<Seen> {
  const object = JSON.parse(await controller.kubectl('get', 'pod', pod, '-o', 'json'))
  return object.status.containerStatuses[0]
}
