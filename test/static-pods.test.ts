/** Pods from files: with no controller ever asked, and seen through mirrors once there is one. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { Pod } from '../api/pod.ts'
import { type TestDockerd, whyNoDockerd } from './support/dockerd.ts'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

async function aMachine(t: Test) {
  const { folder, startAgent, ...fleet } = await joinedFleet(t)
  const manifests = join(folder, 'manifests')
  await mkdir(manifests)
  return {
    ...fleet,
    start: () => startAgent('pi-1', { staticPodPath: manifests, fileCheckFrequency: '2s' }),
    /** As an editor does: aside first, then in place. */
    async write(name: string, content: string) {
      await writeFile(join(manifests, `.${name}.part`), content)
      await rename(join(manifests, `.${name}.part`), join(manifests, name))
    },
    remove: (name: string) => rm(join(manifests, name)),
  }
}

function manifest(name: string, command: string, more: Partial<Pod['spec']> = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      terminationGracePeriodSeconds: 2,
      containers: [{ name: 'main', image, command: ['sh', '-c', command] }],
      ...more,
    },
  })
}
const listening = 'trap "exit 0" TERM; while :; do sleep 0.2; done'

test('a static pod runs with no controller ever seen, and has a mirror once there is one', {
  skip: whyNoDockerd(),
}, async (t) => {
  const { docker, controller: first, ...machine } = await aMachine(t)
  await first.program.stop()

  await machine.write('web.yaml', manifest('web', listening))
  await machine.write(
    'broken.yaml',
    'kind: Pod\napiVersion: v1\nmetadata: {name: broken}\nspec: {containers: [{name: A}]}',
  )
  const agent = await machine.start()
  const before = await eventually('it runs without a controller', () => running(docker, 'web-pi-1'))
  t.match((await agent.logged('Static pod file not used'))['because'], /spec\.containers\[0\]\.image: Required value/)

  const controller = await machine.controllerAgain()
  await controllerSees(controller, 'web-pi-1')
  const mirror = await podIn(controller, 'web-pi-1')
  t.match(mirror.metadata.annotations, {
    'kubernetes.io/config.source': 'file',
    'kubernetes.io/config.mirror': mirror.metadata.annotations?.['kubernetes.io/config.hash'],
  })
  t.match(mirror.metadata.ownerReferences, [{ kind: 'Node', name: 'pi-1', controller: true }])
  t.equal(
    mirror.status?.containerStatuses?.[0]?.containerID,
    `docker://${before}`,
    'it is the container that ran before',
  )
  await eventually('its events are recorded, those from before the controller came too', async () =>
    (await controller.kubectl('describe', 'pod', 'web-pi-1')).includes('Started container main'),
  )
  await eventually('the broken file is reported at the node', async () =>
    (await controller.kubectl('describe', 'node', 'pi-1')).includes('InvalidStaticPod'),
  )

  await controller.kubectl('delete', 'pod', 'web-pi-1', '--wait=false')
  await eventually('a mirror that is deleted comes back', async () => {
    const now = await controller.tryKubectl('get', 'pod', 'web-pi-1', '-o', 'json')
    return now.code === 0 && (JSON.parse(now.stdout) as Pod).metadata.uid !== mirror.metadata.uid
  })
  await controllerSees(controller, 'web-pi-1')
  t.equal(await running(docker, 'web-pi-1'), before, 'and what it shows was never stopped')

  agent.kill('SIGKILL')
  await agent.ended
  const second = await machine.start()
  await second.logged('Node status posted')
  await controllerSees(controller, 'web-pi-1')
  t.equal(await running(docker, 'web-pi-1'), before, 'another agent adopts it')

  await machine.write('web.yaml', manifest('web', `echo changed; ${listening}`))
  const after = await eventually('a changed file replaces the pod', async () => {
    const now = await running(docker, 'web-pi-1')
    return now !== undefined && now !== before && now
  })
  await eventually('and its mirror', async () => {
    const now = await podIn(controller, 'web-pi-1')
    return now.status?.containerStatuses?.[0]?.containerID === `docker://${after}`
  })

  await machine.write('web.yaml', 'apiVersion: v1\nkind: [')
  await eventually('a file that is no longer YAML', async () =>
    second.lines.some(
      ({ message, because }) => message === 'Static pod file not used' && /not YAML/.test(`${because}`),
    ),
  )
  t.equal(await running(docker, 'web-pi-1'), after, 'ends nothing that runs')

  await machine.remove('web.yaml')
  await eventually('a file that is gone stops it', async () => (await running(docker, 'web-pi-1')) === undefined)
  await eventually(
    'and its mirror goes',
    async () => (await controller.tryKubectl('get', 'pod', 'web-pi-1')).code !== 0,
  )
  t.equal(await second.stop(), 0)
})

/** The id of the container that runs for the pod. */
async function running({ docker }: TestDockerd, pod: string): Promise<string | undefined> {
  const label = [`io.kubernetes.pod.name=${pod}`, 'io.kubernetes.container.name=main']
  const found = await docker.listContainers({ filters: { label, status: ['running'] } })
  return found[0]?.Id
}

async function controllerSees(controller: Controller, pod: string): Promise<void> {
  await eventually(`${pod} is shown as running`, async () => {
    const { code, stdout } = await controller.tryKubectl('get', 'pods')
    return code === 0 && new RegExp(`${pod}\\s+1/1\\s+Running`).test(stdout)
  })
}

async function podIn(controller: Controller, name: string): Promise<Pod> {
  return JSON.parse(await controller.kubectl('get', 'pod', name, '-o', 'json'))
}
