/** Measures the CPU time of the controllers of workloads, with the scheduler. `--help` prints the usage. */
import { aNode } from '../api/testing/builders.ts'
import type { Deployment } from '../api/workloads/deployment.ts'
import type { ReplicaSet } from '../api/workloads/replica-set.ts'
import { workloadControllers } from '../broker-controller/controllers/workloads/workload-controllers.ts'
import { scheduler } from '../broker-controller/scheduler/scheduler.ts'
import { memoryStore } from '../broker-controller/store/memory-store.ts'
import type { Store } from '../broker-controller/store/store.ts'
import { workloadNeeds } from '../broker-controller/testing/workload-world.ts'
import { rfc3339 } from '../daemon/clock.ts'
import { openLog } from '../daemon/log.ts'
import { runLoops } from '../daemon/run.ts'
import { type FakeClock, fakeClock } from '../daemon/testing/fake-clock.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const nodes = 200
const replicas = 1000
const atRest = 500
const adopters = 100
const podsOfEach = 100
const restMinutes = 10

benchmarkOptions({
  name: 'node dist/bench/workloads.js',
  text: `Measures the CPU time of the controllers of workloads, with the scheduler: a Deployment of ${replicas} replicas on ${nodes} nodes, its
rolling update, ${atRest} Deployments at rest, and ${adopters * podsOfEach} pods that get an owner. All is in memory, with a clock that the
benchmark advances; it plays the nodes itself, and does not count that time. Prints a table.`,
  options: {},
})

type World = {
  readonly store: Store
  readonly clock: FakeClock
  readonly create: (one: Deployment) => Promise<unknown>
  readonly createSet: (one: ReplicaSet) => Promise<unknown>
}

const rows: [string, string][] = []
await measured(async (world) => {
  const [made] = await cpuOf(world, async () => void (await world.create(aDeployment('web', replicas, 'web:1'))), 'web')
  rows.push([`${replicas} replicas on ${nodes} nodes, until they are available`, `${made.toFixed(0)} ms`])
  const [updated, turns] = await cpuOf(world, () => setImage(world, 'web', 'web:2'), 'web')
  rows.push([`rolling update of them (25 %, ${turns} turns of the nodes)`, `${updated.toFixed(0)} ms`])
})
await measured(async (world) => {
  for (let at = 0; at < atRest; at++) await world.create(aDeployment(`web-${at}`, 2, 'web:1'))
  for (let turn = 0; turn < 20; turn++) await runNodes(world)
  const before = process.cpuUsage()
  const version = await world.store.version()
  await world.clock.advance(restMinutes * 60_000)
  const ms = cpuSince(before) / restMinutes
  const writes = Number(await world.store.version()) - Number(version)
  rows.push([`${atRest} Deployments of two replicas at rest, a minute`, `${ms.toFixed(2)} ms, ${writes} writes`])
})
await measured(async (world) => {
  for (let at = 0; at < adopters * podsOfEach; at++) await createRunning(world, `pod-${at}`, `web-${at % adopters}`)
  const before = process.cpuUsage()
  for (let at = 0; at < adopters; at++) {
    const { metadata, spec } = aDeployment(`web-${at}`, podsOfEach, 'web:1')
    const { replicas: wanted, selector, template } = spec
    const set = { replicas: wanted, selector, template }
    await world.createSet({ apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata, spec: set })
  }
  for (let turn = 0; !(await areAdopted(world)); turn++) {
    if (turn === 200) throw new Error('The pods are not adopted')
    await world.clock.advance(1000)
  }
  rows.push([`${adopters * podsOfEach} pods adopted by ${adopters} ReplicaSets`, `${cpuSince(before).toFixed(0)} ms`])
})
console.log(rows.map(([what, figure]) => `| ${what} | ${figure} |`).join('\n'))

async function measured(run: (world: World) => Promise<void>): Promise<void> {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  for (const name of ['default', 'kube-system']) {
    await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  }
  for (let at = 0; at < nodes; at++) await store.create('nodes', aNode({ name: `pi-${at}` }))
  const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
  const needs = workloadNeeds(store, clock, log)
  const stop = new AbortController()
  const loops = [...workloadControllers(needs), scheduler({ ...needs, random: Math.random })]
  const ended = runLoops(loops, stop.signal, log)
  await clock.advance(1000)
  const { creation } = needs
  await run({
    store,
    clock,
    create: (one) => creation.create('deployments', one, 'bench'),
    createSet: (one) => creation.create('replicasets', one, 'bench'),
  })
  stop.abort()
  await ended
}

/** CPU ms of all but the nodes from `act` until the Deployment is complete, and the turns that the nodes had. */
async function cpuOf(world: World, act: () => Promise<void>, name: string): Promise<readonly [number, number]> {
  let ms = 0
  const counted = async (part: () => Promise<void>) => {
    const before = process.cpuUsage()
    await part()
    ms += cpuSince(before)
  }
  await counted(act)
  for (let turn = 1; ; turn++) {
    await counted(() => world.clock.advance(1000))
    await playNodes(world)
    await counted(() => world.clock.advance(1000))
    if (await isComplete(world, name)) return [ms, turn]
    if (turn === 200) throw new Error('The rollout does not end')
  }
}

async function runNodes(world: World): Promise<void> {
  await world.clock.advance(1000)
  await playNodes(world)
}

/** Every bound pod is ready, and those that leave are gone. */
async function playNodes({ store, clock }: World): Promise<void> {
  const now = rfc3339(clock.wallMs())
  for (const pod of (await store.list('pods')).items) {
    const { name, namespace = '', deletionTimestamp } = pod.metadata
    if (deletionTimestamp !== undefined) await store.delete('pods', { namespace, name })
    else if (pod.spec.nodeName && pod.status?.phase !== 'Running') {
      const ready = { type: 'Ready', status: 'True', lastTransitionTime: now } as const
      await store.updateStatus('pods', { ...pod, status: { ...pod.status, phase: 'Running', conditions: [ready] } })
    }
  }
}

async function createRunning({ store, clock }: World, name: string, app: string): Promise<void> {
  const metadata = { namespace: 'default', name, labels: { app } }
  const spec = { nodeName: 'pi-0', containers: [{ name: 'main', image: 'web:1' }] }
  const pod = await store.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec })
  const ready = { type: 'Ready', status: 'True', lastTransitionTime: rfc3339(clock.wallMs()) } as const
  await store.updateStatus('pods', { ...pod, status: { phase: 'Running', conditions: [ready] } })
}

async function areAdopted({ store }: World): Promise<boolean> {
  const [{ items: pods }, { items: sets }] = [await store.list('pods'), await store.list('replicasets')]
  if (pods.length !== adopters * podsOfEach) throw new Error(`${pods.length} pods: one was created or deleted`)
  const isOwned = pods.every(({ metadata }) => metadata.ownerReferences?.length === 1)
  return isOwned && sets.every(({ status }) => status?.availableReplicas === podsOfEach)
}

async function isComplete({ store }: World, name: string): Promise<boolean> {
  const one = await store.get('deployments', { namespace: 'default', name })
  const { updatedReplicas, replicas: all, availableReplicas, observedGeneration } = one?.status ?? {}
  const wanted = one?.spec.replicas
  const isWhole = updatedReplicas === wanted && all === wanted && availableReplicas === wanted
  return isWhole && observedGeneration === one?.metadata.generation
}

async function setImage({ store }: World, name: string, image: string): Promise<void> {
  const one = await store.get('deployments', { namespace: 'default', name })
  if (one === undefined) throw new Error(`No Deployment ${name}`)
  const [container] = one.spec.template.spec.containers
  const containers = container === undefined ? [] : [{ ...container, image }]
  const template = { ...one.spec.template, spec: { ...one.spec.template.spec, containers } }
  await store.update('deployments', { ...one, spec: { ...one.spec, template } })
}

function aDeployment(name: string, count: number, image: string): Deployment {
  const labels = { app: name }
  const containers = [{ name: 'main', image, resources: { requests: { cpu: '10m', memory: '16Mi' } } }]
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas: count,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  }
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
