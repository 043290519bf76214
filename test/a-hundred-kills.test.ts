/** The agent is killed a hundred times at random moments, while the pods of its node start, stop and crash. */
import { randomInt } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import tap, { type Test, test } from 'tap'
import { volumeFolders } from '../agent/adapters/disk/volume-store.ts'
import { dockerRuntime } from '../agent/adapters/docker/docker-runtime.ts'
import type { ContainerRuntime } from '../agent/runtime/runtime.ts'
import type { Container, Pod } from '../api/pod.ts'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { type ApiClient, apiClient } from '../daemon/api-client.ts'
import { seededRandom } from '../daemon/testing/seeded-random.ts'
import { startDockerd, type TestDockerd, whyNoDockerd } from './support/dockerd.ts'
import { type Controller, joinFleet, startAgent, startController, temporaryFolder } from './support/fleet.ts'
import { container, isReady, listening } from './support/pods.ts'
import { eventually } from './support/wait.ts'

tap.setTimeout(600_000)

const kills = 100
/** A third are killed before they have spoken to the controller, the others while they act on what they received. */
const actingMs = 1_000
/** For all lives together: on a slow machine they are shorter. */
const budgetMs = 70_000
const mostGuests = 6
const nodeName = 'pi-1'
const image = 'test/busybox:1'
const podsPath = '/api/v1/namespaces/default/pods'
/** Healthy ones run until their pod is deleted; the others end by themselves. */
const scripts = {
  healthy: listening[2] ?? '',
  deaf: 'exec sleep 100000',
  done: 'exit 0',
  crashing: 'sleep 0.1; exit 3',
} as const
type Kind = keyof typeof scripts
const lasts = (kind: Kind) => kind === 'healthy' || kind === 'deaf'

type Guest = { readonly kind: Kind; deletedAtMs?: number }

test('a hundred SIGKILLs of the agent lose nothing, leave nothing, and restart nothing that was well', {
  skip: whyNoDockerd(),
}, async (t) => {
  const seed = Number(process.env['BRAMBLE_SEED'] ?? randomInt(2 ** 31))
  t.comment(`BRAMBLE_SEED=${seed}`)
  const random = seededRandom(seed)
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const folder = await temporaryFolder(t)
  const controller = await startController(t, { dataDir: join(folder, 'controller') })
  const dataDir = join(folder, 'agent')
  await joinFleet(controller, nodeName, dataDir)
  const api = await clientOf(controller)
  const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName })
  const agentStarts = () => startAgent(t, { dataDir, dockerSocket: dockerd.socket })
  const lives = await follow(t, dockerd)

  const steady = [
    podOf('steady', [container('main', scripts.healthy), container('second', scripts.healthy)]),
    podOf('staged', [container('main', scripts.healthy)], [container('first', 'exit 0')]),
    podOf('crasher', [container('main', scripts.crashing)]),
  ]
  const beganMs = performance.now()
  let agent = await agentStarts()
  await agent.logged('Node status posted')
  const startMs = performance.now() - beganMs
  for (const pod of steady) await create(api, pod)
  const ready = async (...names: readonly string[]) => {
    const pods = await podsOf(api)
    return names.every((name) => pods.some((pod) => pod.metadata.name === name && isReady(pod.status ?? {})))
  }
  await eventually('the first pods run', () => ready('steady', 'staged'))
  const well = (names: readonly string[]) => running(runtime, names)
  const before = await well(['steady', 'staged'])
  t.equal(before.length, 5)

  const guests = new Map<string, Guest>()
  let posted = 0
  const endMs = performance.now() + budgetMs
  for (let kill = 1; kill <= kills; kill++) {
    const lifeMs = random() < 1 / 3 ? random() * startMs : startMs + random() * actingMs
    const mostMs = (2 * (endMs - performance.now())) / (kills - kill + 1)
    const killed = delay(Math.max(0, Math.min(lifeMs, mostMs))).then(() => agent.kill('SIGKILL'))
    await Promise.all([comeAndGo(api, guests, kill, random), killed])
    await agent.ended
    if (agent.lines.some(({ message }) => message === 'Node status posted')) posted++
    agent = await agentStarts()
  }

  for (const [name, guest] of guests) if (!lasts(guest.kind)) await leave(api, name, guest)
  await leave(api, 'crasher')
  const staying = [...guests].filter(([, { deletedAtMs }]) => deletedAtMs === undefined).map(([name]) => name)
  const wanted = ['steady', 'staged', ...staying].sort()
  await eventually('every wanted pod is ready, and no other is there', async () => {
    const pods = await podsOf(api)
    const names = pods.map(({ metadata }) => metadata.name ?? '').sort()
    return names.join() === wanted.join() && pods.every(({ status = {} }) => isReady(status))
  })

  t.same(await well(['steady', 'staged']), before, 'what was well runs on, since the same moment')
  const uids = (await podsOf(api)).map(({ metadata }) => metadata.uid ?? '').sort()
  await eventually('the engine has what is wanted and nothing else', async () => {
    const found = await runtime.listContainers()
    const sandboxes = found.filter(({ identity }) => identity.kind === 'sandbox')
    return (
      found.every(({ identity, state }) => uids.includes(identity.podUID) && ['running', 'exited'].includes(state)) &&
      sandboxes.length === uids.length &&
      sandboxes.every(({ state }) => state === 'running')
    )
  })
  const { docker } = dockerd
  t.equal((await docker.listContainers({ all: true })).length, (await runtime.listContainers()).length)
  const custom = await docker.listNetworks({ filters: JSON.stringify({ type: ['custom'] }) })
  t.equal(custom.length, 1, 'one network')
  t.same((await docker.listVolumes()).Volumes ?? [], [], 'no volume of the engine')
  const { memoryDirectory: memory } = await volumeFolders(dataDir)
  for (const place of [join(dataDir, 'pods'), join(memory, 'pods'), join(memory, 'messages')]) {
    t.same((await readdir(place)).sort(), uids, `volumes in ${place}`)
  }
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '')
  const strange = mounts
    .filter((path) => path.startsWith(`${memory}/`) || path.startsWith(`${dataDir}/`))
    .filter((path) => path !== join(memory, 'messages') && !uids.some((uid) => path.includes(uid)))
  t.same(strange, [], 'nothing is mounted for pods that are gone')
  t.same(lives.endedTooEarly(guests), [], 'no healthy container ended before its pod was deleted')
  t.comment(`${Math.round(startMs)} ms to start; ${posted} of ${kills} were killed later than that`)
  t.comment(`${guests.size} pods came, ${staying.length} stayed; ${lives.started()} containers were started`)
  t.equal(await agent.stop(), 0)
})

/** One or two pods come, and now and then one is deleted. */
async function comeAndGo(api: ApiClient, guests: Map<string, Guest>, kill: number, random: () => number) {
  const kinds: readonly Kind[] = ['healthy', 'deaf', 'done', 'crashing']
  const here = [...guests].filter(([, { deletedAtMs }]) => deletedAtMs === undefined)
  for (const [name, guest] of here) {
    if (random() < 0.1) await leave(api, name, guest)
  }
  if (here.length > mostGuests || random() < 0.3) return
  const kind = kinds[Math.floor(random() * kinds.length)] ?? 'healthy'
  const name = `${kind}-${kill}`
  guests.set(name, { kind })
  const pod = podOf(name, [container('main', scripts[kind])])
  await create(api, kind === 'done' ? { ...pod, spec: { ...pod.spec, restartPolicy: 'Never' } } : pod)
}

async function leave(api: ApiClient, name: string, guest?: Guest): Promise<void> {
  if (guest?.deletedAtMs !== undefined) return
  if (guest !== undefined) guest.deletedAtMs = Date.now()
  const { status } = await api.delete(`${podsPath}/${name}`)
  if (status >= 300 && status !== 404) throw new Error(`Pod ${name} was not deleted: ${status}`)
}

/** On the node by name: a scheduler would wait until it is Ready again. */
function podOf(name: string, containers: readonly Container[], initContainers: readonly Container[] = []): Pod {
  const volumeMounts = ['disk', 'memory'].map((volume) => ({ name: volume, mountPath: `/${volume}` }))
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 1,
      initContainers,
      containers: containers.map((one) => ({ ...one, volumeMounts })),
      volumes: [
        { name: 'disk', emptyDir: {} },
        { name: 'memory', emptyDir: { medium: 'Memory' } },
      ],
    },
  }
}

async function create(api: ApiClient, pod: Pod): Promise<void> {
  const { status, body } = await api.post(podsPath, pod)
  if (status >= 300) throw new Error(`Pod ${pod.metadata.name} was refused: ${JSON.stringify(body)}`)
}

async function podsOf(api: ApiClient): Promise<readonly Pod[]> {
  const { body } = await api.get(podsPath)
  return (body as { readonly items: readonly Pod[] }).items
}

async function clientOf({ kubeconfig }: Controller): Promise<ApiClient> {
  return apiClient({ ...(await readKubeconfig(kubeconfig)), deadlineMs: 60_000 })
}

async function running(runtime: ContainerRuntime, podNames: readonly string[]): Promise<readonly string[]> {
  const found = (await runtime.listContainers()).filter(({ state }) => state === 'running')
  return found
    .filter(({ identity }) => podNames.includes(identity.podName))
    .map(({ id, startedAt, identity }) => `${identity.podName} ${identity.containerName} ${id} ${startedAt}`)
    .sort()
}

/** The engine's events of starts and ends, whether or not an agent received them. */
async function follow(t: Test, { docker }: TestDockerd) {
  const filters = { type: ['container'], event: ['start', 'die'], label: ['io.kubernetes.docker.type=container'] }
  const stream = await docker.getEvents({ filters: JSON.stringify(filters) })
  t.teardown(async () => void ('destroy' in stream && typeof stream.destroy === 'function' && stream.destroy()))
  type EngineEvent = { readonly Action: string; readonly id: string; readonly timeNano: number } & {
    readonly Actor: { readonly Attributes: { readonly [name: string]: string } }
  }
  const engineEvents: EngineEvent[] = []
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('error', () => undefined)
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) engineEvents.push(JSON.parse(line))
  })
  return {
    started: () => engineEvents.filter(({ Action }) => Action === 'start').length,
    endedTooEarly(guests: ReadonlyMap<string, Guest>): readonly string[] {
      const begun = new Set(engineEvents.filter(({ Action }) => Action === 'start').map(({ id }) => id))
      return engineEvents
        .filter(({ Action, id }) => Action === 'die' && begun.has(id))
        .map(({ Actor, timeNano }) => ({
          name: Actor.Attributes['io.kubernetes.pod.name'] ?? '',
          atMs: timeNano / 1e6,
        }))
        .filter(({ name, atMs }) => {
          const { kind = 'done', deletedAtMs = Number.POSITIVE_INFINITY } = guests.get(name) ?? {}
          return lasts(kind) && atMs < deletedAtMs
        })
        .map(({ name }) => name)
    },
  }
}
