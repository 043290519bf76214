/** Simulates a day of a fleet with the code of the controller. `--help` prints the usage. */
import { boundPod } from '../../api/pod/pod-conditions.ts'
import type { Deployment } from '../../api/workloads/deployment.ts'
import { eventCleanup } from '../../broker-controller/controllers/event-cleanup.ts'
import { nodeLifecycleController } from '../../broker-controller/controllers/node-lifecycle/node-lifecycle-controller.ts'
import { disruptionController } from '../../broker-controller/controllers/pods/disruption-controller.ts'
import { podCleanupController } from '../../broker-controller/controllers/pods/pod-cleanup-controller.ts'
import { taintEvictionController } from '../../broker-controller/controllers/pods/taint-eviction-controller.ts'
import { workloadControllers } from '../../broker-controller/controllers/workloads/workload-controllers.ts'
import { scheduler } from '../../broker-controller/scheduler/scheduler.ts'
import { memoryStore } from '../../broker-controller/store/memory-store.ts'
import { workloadNeeds } from '../../broker-controller/testing/workload-world.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { openLog } from '../../daemon/log.ts'
import { runLoops } from '../../daemon/run.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { seededRandom } from '../../daemon/testing/seeded-random.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'
import { leaseFeed } from './lease-feed.ts'
import { type Departure, simulatedNodes } from './simulated-nodes.ts'

const row = {
  name: 'node dist/bench/day/day.js',
  text: `Runs the control loops of the controller over a store in memory and a clock that is advanced second by second, with simulated nodes in three
regions of three zones. Each hour a few machines fail for ten minutes, and others are silent for 8 s. A quarter into the day the
controller is restarted; at half of it a region is lost for an hour. Prints what was evicted and when, and the CPU time of the control
loops. Heartbeats reach the node lifecycle controller without the cost of writing them. Exits with 1 if a pod was evicted that should not have been, was seen on two nodes, or is missing at the end.`,
  options: {
    nodes: { value: 'N', help: 'number of nodes', range: [9, 100_000], default: '500' },
    pods: { value: 'N', help: 'pods of each, in Deployments of 20', range: [1, 100], default: '10' },
    hours: { value: 'N', help: 'length of the day', range: [4, 1_000], default: '24' },
    lease: {
      value: 'S',
      help: 'nodeLeaseDurationSeconds of the nodes; they send heartbeats four times as often',
      range: [40, 200],
      default: '40',
    },
    placed: { help: 'divide the first pods among the nodes without the scheduler; it places all later ones' },
    latency: {
      value: 'MS',
      help: 'time that heartbeats and reports of pods are under way, on average: of most it is shorter, of some much longer',
      range: [0, 60_000],
      default: '0',
    },
    away: { value: 'S', help: 'how long the controller is away when it is restarted', range: [0, 3_600], default: '0' },
    seed: { value: 'N', help: 'seed of the failures', range: [0, 1_000_000], default: '1' },
  },
} as const

const { nodes: count, pods: podsOfEach, hours, lease, placed, latency, away, seed } = benchmarkOptions(row)
const random = seededRandom(seed)
/** Separate generator: the failures are the same with each latency. */
const randomDelay = seededRandom(seed + 1)
const delayMs = latency === 0 ? undefined : () => -Math.log(1 - randomDelay()) * latency
const replicas = 20
/** Grace period of a lease, as in the node lifecycle controller. */
const graceMs = lease * 1_250
const clock = fakeClock()
const leases = leaseFeed(clock, lease)
const store = leases.over(memoryStore({ clock }))
const log = openLog({ level: 'error', format: 'text', write: (line) => void process.stderr.write(line) })
const regionOf = (zone: string): string => zone.slice(0, 8)
const zones = Array.from({ length: count }, (_, i): readonly [string, string] => [
  `node-${i}`,
  `region-${i % 3}-zone-${Math.floor(i / 3) % 3}`,
])
const nodes = simulatedNodes({ store, clock, log, leases, beatSeconds: lease / 4, delayMs }, zones)
const deployments = Math.round((count * podsOfEach) / replicas)
const problems: string[] = []
let evicted = 0

let controller = startController(!placed)
await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
await nodes.join()
for (let i = 0; i < deployments; i++) await controller.create(aDeployment(`web-${i}`))
if (placed) await place()
await passed(600)
const lost = zones.filter(([, zone]) => regionOf(zone) === 'region-0').map(([name]) => name)
console.log(`${count} nodes, ${deployments * replicas} pods; ${await missing()} not available after 10 min`)

for (let hour = 0; hour < hours; hour++) {
  const before = process.cpuUsage()
  const evictedBefore = evicted
  if (hour === Math.floor(hours / 4)) await restart()
  if (hour === Math.floor(hours / 2)) nodes.silence(lost)
  if (hour === Math.floor(hours / 2) + 1) await nodes.revive(lost)
  const [failing, flapping] = [some(Math.ceil(count / 200)), some(Math.ceil(count / 100))]
  await passed(600)
  nodes.silence(flapping)
  await passed(8)
  await nodes.revive(flapping.filter((name) => hour !== Math.floor(hours / 2) || !lost.includes(name)))
  nodes.silence(failing)
  await passed(600)
  await nodes.revive(failing.filter((name) => hour !== Math.floor(hours / 2) || !lost.includes(name)))
  const worst = await missing()
  await passed(3600 - 1208)
  const { user, system } = process.cpuUsage(before)
  const unknown = await notReady()
  console.log(
    `hour ${hour}: ${evicted - evictedBefore} pods evicted, ${worst} and ${await missing()} not available after 20 and 60 min, ${unknown} nodes not Ready, ${((user + system) / 1_000_000).toFixed(1)} s CPU`,
  )
}
await passed(900)
const gone = await missing()
if (gone > 0) problems.push(`${gone} pods are not available at the end`)
if (nodes.moved.length > 0) problems.push(`${nodes.moved.length} pods were seen on two nodes`)
const rss = process.memoryUsage().rss / 1_000_000
console.log(
  `${evicted} pods evicted in ${hours} h, ${(await store.list('events')).items.length} Events kept, ${rss.toFixed(0)} MB resident`,
)
await controller.stop()
for (const problem of problems) console.error(problem)
process.exit(problems.length === 0 ? 0 : 1)

/** What a process of the controller runs. */
function startController(schedules = true) {
  const needs = { ...workloadNeeds(store, clock, log), random }
  const stop = new AbortController()
  const loops = [
    nodeLifecycleController(needs),
    taintEvictionController(needs),
    podCleanupController(needs, { terminatedPodGCThreshold: 12_500 }),
    disruptionController(needs),
    eventCleanup(needs),
    ...workloadControllers(needs),
    ...(schedules ? [scheduler(needs)] : []),
    nodes.loop,
  ]
  const running = runLoops(loops, stop.signal, log)
  return {
    create: (deployment: Deployment) => needs.creation.create('deployments', deployment, 'bench'),
    async stop() {
      stop.abort()
      await clock.settle()
      await running
    },
  }
}

/** Leases are in the memory of the process that ends. */
async function restart(): Promise<void> {
  await controller.stop()
  nodes.disconnect()
  await passed(away)
  nodes.connect()
  leases.forget()
  controller = startController()
}

/** Binds all pods, to one node after the other. */
async function place(): Promise<void> {
  await passed(60)
  for (const [i, pod] of (await store.list('pods')).items.entries()) {
    await store.update('pods', boundPod(pod, nodes.names[i % count] ?? '', rfc3339(clock.wallMs())))
  }
  await controller.stop()
  controller = startController()
}

async function passed(seconds: number): Promise<void> {
  for (let i = 0; i < seconds; i++) await nodes.tick()
  for (const departure of nodes.departures()) {
    evicted += 1
    check(departure)
  }
}

/** A pod is evicted 300 s after its node became unreachable, which takes the grace period: never from a node that sends heartbeats. */
function check({ pod, node, silentMs }: Departure): void {
  if (silentMs < graceMs) problems.push(`${pod} was evicted from ${node}, which was silent for ${silentMs} ms`)
}

function some(number: number): readonly string[] {
  return Array.from({ length: number }, () => nodes.names[Math.floor(random() * count)] ?? '')
}

async function missing(): Promise<number> {
  const { items } = await store.list('deployments')
  return items.reduce((sum, { status }) => sum + replicas - (status?.availableReplicas ?? 0), 0)
}

async function notReady(): Promise<number> {
  const { items } = await store.list('nodes')
  const isReady = ({ status }: (typeof items)[number]) =>
    status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True')
  return items.filter((node) => !isReady(node)).length
}

function aDeployment(name: string): Deployment {
  const labels = { app: name }
  const requests = { cpu: '10m', memory: '16Mi' }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'main', image: 'web:1', resources: { requests } }] },
      },
    },
  }
}
