/** What goes wrong in the middle: pods that are deleted while they start, an engine whose answers do not arrive. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { type Test, test } from 'tap'
import { freePort } from '../agent/testing/free-port.ts'
import type { Pod } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { dockerDoor } from './support/docker-door.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, listening, nodeOnDocker, outputOf, statusOf } from './support/pods.ts'

const [, , listens = ''] = listening

test('trouble in the middle, on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const leaving = (pod: Pod, seconds: number): Pod => ({
    ...pod,
    metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: seconds },
  })

  t.test('a pod that is deleted while it starts leaves nothing, whatever it was doing', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const never = 'while :; do sleep 0.1; done'
    const postStart = { exec: { command: ['sh', '-c', never] } }
    const registry = await silentRegistry(t)
    const named = (name: string, more: Parameters<typeof aPod>[0]) => aPod({ name, uid: `uid-${name}`, ...more })
    const staged = named('staged', {
      spec: { initContainers: [container('first', never)] },
      containers: [container('main', listens)],
    })
    const hooked = named('hooked', { containers: [container('main', listens, { lifecycle: { postStart } })] })
    const pulls = named('pulls', { containers: [container('main', listens, { image: `${registry.host}/app:1` })] })
    const missing = named('missing', {
      containers: [container('main', listens, { volumeMounts: [{ name: 'none', mountPath: '/none' }] })],
      spec: { volumes: [{ name: 'none', configMap: { name: 'none' } }] },
    })
    const all = [staged, hooked, pulls, missing]
    node.want(...all)
    await node.until('staged', (status) => statusOf(status, 'first')?.state?.running !== undefined)
    await node.until('hooked', (status) => statusOf(status, 'main')?.state?.running !== undefined)
    await registry.asked
    await node.until('missing', (status) => /not found/.test(statusOf(status, 'main')?.state?.waiting?.message ?? ''))
    t.same(
      all.filter((pod) => isReady(node.status(pod.metadata.name ?? '') ?? {})),
      [],
      'none had started',
    )
    node.want(...all.map((pod) => leaving(pod, 1)))
    await eventually(() => all.every((pod) => node.gone.includes(pod.metadata.uid ?? '')))
    t.same(await node.runtime.listContainers(), [])
  })

  t.test('who does not listen is killed after the grace the pod has, not before', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const deaf = aPod({
      name: 'deaf',
      uid: 'uid-deaf',
      containers: [container('main', 'trap "echo received" TERM; echo up; while :; do sleep 0.1; done')],
    })
    node.want(deaf)
    await node.until('deaf', isReady)
    await eventually(async () => (await outputOf(dockerd, 'uid-deaf', 'main')) === 'up\n')
    const since = Math.floor(Date.now() / 1000)
    const beganMs = performance.now()
    node.want(leaving(deaf, 3))
    await eventually(() => node.gone.includes('uid-deaf'))
    t.ok(performance.now() - beganMs > 2_900, 'it had its time')
    t.same(await signals(since), ['15', '9'])
  })

  const signals = async (since: number): Promise<readonly string[]> => {
    const filters = {
      event: ['kill'],
      label: ['io.kubernetes.pod.uid=uid-deaf', 'io.kubernetes.docker.type=container'],
    }
    const until = Math.ceil(Date.now() / 1000)
    const stream = await dockerd.docker.getEvents({ since, until, filters: JSON.stringify(filters) })
    let text = ''
    for await (const chunk of stream) text += chunk
    const lines = text.split('\n').filter((line) => line !== '')
    return lines.map((line) => JSON.parse(line).Actor.Attributes.signal)
  }

  t.test('an answer of the engine that is lost, any one of them, delays a pod and doubles nothing', async (t) => {
    const door = await dockerDoor(t, dockerd.socket)
    const node = nodeOnDocker(t, { ...dockerd, socket: door.socket })
    const states = async (uid: string) =>
      (await node.runtime.listContainers(uid)).map(({ identity, state }) => `${identity.kind} ${state}`).sort()
    let lost = 0
    let cut = true
    const uncut = () => {
      if (door.wasCut) lost++
      cut ||= door.wasCut
      door.cut(Number.POSITIVE_INFINITY)
    }
    for (let step = 0; cut; step++) {
      const name = `step-${step}`
      const pod = aPod({ name, uid: `uid-${name}`, containers: [container('main', listens)] })
      cut = false
      door.cut(step)
      node.want(pod)
      await node.until(name, isReady)
      uncut()
      t.same(await states(`uid-${name}`), ['container running', 'sandbox running'], `${name}: once, and running`)
      door.cut(step)
      node.want(leaving(pod, 1))
      await eventually(() => node.gone.includes(`uid-${name}`))
      uncut()
      t.same(await states(`uid-${name}`), [], `${name}: gone`)
    }
    t.comment(`${lost} answers were lost`)
    t.ok(lost > 8)
  })

  t.test('a port in use is reported, and taken once it is free; no other pod waits for it', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const hostPort = await freePort()
    const server = createServer().listen(hostPort, '0.0.0.0')
    await once(server, 'listening')
    const ports = [{ containerPort: 80, hostPort }]
    node.want(
      aPod({ name: 'web', uid: 'uid-web', containers: [container('main', listens, { ports })] }),
      aPod({ name: 'other', uid: 'uid-other', containers: [container('main', listens)] }),
    )
    await eventually(() => node.eventTexts().some((line) => line.startsWith('FailedCreatePodSandBox')))
    t.match(node.eventTexts().join('\n'), new RegExp(`${hostPort}.*address already in use`))
    await node.until('other', isReady)
    t.equal(node.status('web')?.phase, 'Pending')
    server.close()
    await node.until('web', isReady)
  })
})

/** It accepts the request and does not answer. */
async function silentRegistry(t: Test) {
  let received: () => void = () => undefined
  const asked = new Promise<void>((resolve) => {
    received = resolve
  })
  const server = createHttpServer(() => received()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { asked, host: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}
