/** DaemonSets and StatefulSets on two machines, with the real kubectl; then the agent of one machine is killed. */
import { test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image, listening } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const nextImage = 'test/busybox:2'
type PodView = {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string }
  readonly spec: { readonly nodeName?: string; readonly containers: readonly [{ readonly image: string }] }
}

function workload(kind: 'DaemonSet' | 'StatefulSet', name: string, spec: object): string {
  const labels = { app: name }
  const tolerations = ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 2,
  }))
  const containers = [{ name: 'main', image, command: listening, imagePullPolicy: 'Never' }]
  const template = { metadata: { labels }, spec: { containers, tolerations, terminationGracePeriodSeconds: 2 } }
  return JSON.stringify({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name },
    spec: { selector: { matchLabels: labels }, template, ...spec },
  })
}
const podsOf = async ({ kubectl }: Controller, app: string): Promise<readonly PodView[]> =>
  JSON.parse(await kubectl('get', 'pods', '-l', `app=${app}`, '-o', 'json')).items
const imagesOf = async (controller: Controller, app: string) =>
  (await podsOf(controller, app)).map(({ spec }) => spec.containers[0].image)

test('kubectl rolls DaemonSets and StatefulSets out and back', { skip: whyNoDockerd() }, async (t) => {
  const { controller, docker, startReady } = await joinedFleet(t, { names: ['pi-1', 'pi-2'] })
  const { kubectl, kubectlWith, tryKubectl } = controller
  await docker.importImage(nextImage)
  await startReady()
  await kubectlWith(workload('DaemonSet', 'log', {}), 'create', '-f', '-')
  await kubectlWith(workload('StatefulSet', 'db', { replicas: 2, serviceName: 'db' }), 'create', '-f', '-')
  const done = (of: string) => kubectl('rollout', 'status', of, '--timeout=85s')

  t.match(await done('ds/log'), /daemon set "log" successfully rolled out/)
  t.match(await done('sts/db'), /2 pods at revision db-\w+|partitioned roll out complete/)
  t.match(await kubectl('get', 'ds,sts'), /daemonset.apps\/log +2 +2 +2 +2 +2 +<none> .*statefulset.apps\/db +2\/2 /s)
  t.match(
    await kubectl('get', 'ds', '-o', 'wide'),
    /NODE SELECTOR +AGE +CONTAINERS +IMAGES +SELECTOR\nlog .* app=log\n/s,
  )
  t.same((await podsOf(controller, 'log')).map(({ spec }) => spec.nodeName).sort(), ['pi-1', 'pi-2'])
  t.same((await podsOf(controller, 'db')).map(({ metadata }) => metadata.name).sort(), ['db-0', 'db-1'])

  for (const of of ['ds/log', 'sts/db']) {
    const app = of.slice(of.indexOf('/') + 1)
    await kubectl('set', 'image', of, `main=${nextImage}`)
    await done(of)
    t.same(await imagesOf(controller, app), [nextImage, nextImage], of)
    t.match(await kubectl('rollout', 'history', of), /REVISION.*\n1 .*\n2 /s, of)
    t.match(await kubectl('rollout', 'history', of, '--revision=1'), image, of)
    await kubectl('rollout', 'undo', of)
    await done(of)
    t.same(await imagesOf(controller, app), [image, image], of)
    t.match(await kubectl('rollout', 'history', of), /REVISION.*\n2 .*\n3 /s, of)
    await kubectl('rollout', 'restart', of)
    await done(of)
    t.match(await kubectl('rollout', 'history', of), /\n4 /, of)
    t.match(await kubectl('describe', of), /SuccessfulCreate/, of)
  }
  const drained = await kubectl('drain', 'pi-1', '--ignore-daemonsets', '--timeout=80s')
  t.match(drained, 'node/pi-1 drained')
  await eventually('its pod of the StatefulSet runs on the other node', async () => {
    const pods = await podsOf(controller, 'db')
    return pods.length === 2 && pods.every(({ spec }) => spec.nodeName === 'pi-2')
  })
  t.same((await podsOf(controller, 'log')).map(({ spec }) => spec.nodeName).sort(), ['pi-1', 'pi-2'])
  await kubectl('uncordon', 'pi-1')
  await kubectl('scale', 'sts/db', '--replicas=3')
  await done('sts/db')
  t.match(await kubectl('get', 'sts', 'db'), /db +3\/3 /)
  await kubectl('scale', 'sts/db', '--replicas=1')
  await kubectl('wait', '--for=delete', 'pod/db-1', '--timeout=85s')
  t.match((await tryKubectl('scale', 'ds/log', '--replicas=1')).stderr, /could not find the requested resource/)
  await kubectl('delete', 'sts/db', 'ds/log', '--cascade=foreground', '--timeout=85s')
  t.same(await podsOf(controller, 'db'), [])
  t.equal(await kubectl('get', 'controllerrevisions', '-o', 'name'), '')
})

test('a pod of a StatefulSet on a lost machine is not run twice', { skip: whyNoDockerd() }, async (t) => {
  const names = ['pi-1', 'pi-2']
  const { controller, docker, startReady, startAgent } = await joinedFleet(t, {
    names,
    controller: { nodeMonitorPeriod: '1s', nodeMonitorGracePeriod: '20s', nodeConnectionLossDebounce: '1s' },
    agents: { nodeLeaseDurationSeconds: 8 },
  })
  const { kubectl, kubectlWith } = controller
  const agents = await startReady()
  await kubectlWith(workload('DaemonSet', 'log', {}), 'create', '-f', '-')
  await kubectlWith(workload('StatefulSet', 'db', { replicas: 1, serviceName: 'db' }), 'create', '-f', '-')
  await kubectl('rollout', 'status', 'ds/log', '--timeout=85s')
  await kubectl('rollout', 'status', 'sts/db', '--timeout=85s')
  const [first] = await podsOf(controller, 'db')
  const lost = first?.spec.nodeName ?? ''
  t.ok(names.includes(lost), `placed on ${lost}`)

  agents[names.indexOf(lost)]?.kill('SIGKILL')
  await kubectl('wait', '--for=condition=Ready=Unknown', `node/${lost}`, '--timeout=80s')
  await eventually('the pod is asked to leave', async () => {
    const [pod] = await podsOf(controller, 'db')
    return pod?.metadata.deletionTimestamp !== undefined
  })
  // The set is visited again: what it observes is newer than the eviction.
  await kubectl('patch', 'sts', 'db', '-p', '{"spec":{"minReadySeconds":1}}')
  await kubectl('wait', '--for=jsonpath={.status.observedGeneration}=2', 'sts/db', '--timeout=80s')
  t.same(
    (await podsOf(controller, 'db')).map(({ metadata }) => metadata.uid),
    [first?.metadata.uid],
  )
  const running = async () =>
    (await docker.docker.listContainers()).filter(({ Names }) => Names.some((name) => /db-0/.test(name))).length
  const containers = await running()
  t.ok(containers > 0, 'it still runs on the machine that does not answer')
  const daemons = await podsOf(controller, 'log')
  t.same(
    daemons.map(({ metadata }) => metadata.deletionTimestamp),
    [undefined, undefined],
    'a daemon waits there',
  )

  await startAgent(lost)
  await eventually('the machine has ended it, and it is created again', async () => {
    const [pod] = await podsOf(controller, 'db')
    return pod !== undefined && pod.metadata.uid !== first?.metadata.uid
  })
  await kubectl('wait', '--for=condition=Ready', 'pod/db-0', '--timeout=80s')
  await kubectl('rollout', 'status', 'ds/log', '--timeout=85s')
  await eventually('the containers of one pod run', async () => (await running()) === containers)
})
