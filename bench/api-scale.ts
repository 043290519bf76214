/** Measures the API with the objects of a large fleet. `--help` prints the usage. */
import { execFile } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type ApiServer, cpuMs, forgetPeak, peakMB, quantile, residentMB, withApiServer } from './api/api-server.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const { nodes, pods, watches, rate, seconds } = benchmarkOptions({
  name: 'node dist/bench/api-scale.js',
  text: `Starts bramble-controller in a temporary folder, and measures a real kubectl, lists of all pods, and many watches of objects that change
all the time. Prints a table. Takes some minutes. Needs kubectl.`,
  options: {
    nodes: { value: 'N', help: 'nodes for kubectl get nodes; 0: not measured', range: [0, 1_000_000], default: '5000' },
    pods: { value: 'N', help: 'pods in the list; 0: not measured', range: [0, 1_000_000], default: '50000' },
    watches: {
      value: 'N',
      help: 'watches that receive each change; 0: not measured',
      range: [0, 10_000],
      default: '200',
    },
    rate: { value: 'N', help: 'changes per second', range: [1, 100_000], default: '200' },
    seconds: { value: 'S', help: 'seconds with changes', range: [1, 100_000], default: '10' },
  },
})
const writers = 16

await withApiServer('scripts/bramble-controller', measure)

async function measure(server: ApiServer): Promise<void> {
  const [load = 0] = loadavg()
  console.log(`Node ${process.version}, ${cpus().length} cores, load ${load.toFixed(1)}\n\n| | |\n| --- | --- |`)
  const row = (what: string, figure: string) => console.log(`| ${what} | ${figure} |`)
  if (watches > 0) await watching(server, row)
  if (nodes > 0) await nodesWithKubectl(server, row)
  if (pods > 0) await podList(server, row)
}

type Row = (what: string, figure: string) => void

async function nodesWithKubectl({ pid, load, kubeconfig, folder }: ApiServer, row: Row): Promise<void> {
  await load.many(nodes, writers, (i) => ({ method: 'POST', path: '/api/v1/nodes', body: nodeAt(i) }))
  const args = ['--kubeconfig', kubeconfig, '--cache-dir', join(folder, 'kube-cache'), 'get', 'nodes']
  const took: number[] = []
  let before = await cpuMs(pid)
  for (let run = 0; run < 8; run++) {
    if (run === 3) before = await cpuMs(pid)
    const startMs = performance.now()
    const { stdout } = await promisify(execFile)('kubectl', args, { maxBuffer: 64 * 2 ** 20 })
    if (stdout.trim().split('\n').length !== nodes + 1)
      throw new Error(`${stdout.length} characters are not ${nodes} nodes`)
    took.push(performance.now() - startMs)
  }
  const [first = 0, , , ...later] = took
  const cpu = ((await cpuMs(pid)) - before) / later.length
  const range = `${Math.min(...later).toFixed(0)} to ${Math.max(...later).toFixed(0)} ms`
  row(
    `\`kubectl get nodes\` with ${nodes.toLocaleString('en')} nodes, the whole process`,
    `${range}; ${cpu.toFixed(0)} ms of CPU time in the controller; ${first.toFixed(0)} ms for the first, without discovery in its cache`,
  )
}

async function podList({ pid, load }: ApiServer, row: Row): Promise<void> {
  const took = await load.many(pods, writers, (i) => ({
    method: 'POST',
    path: '/api/v1/namespaces/default/pods',
    body: podAt(i),
  }))
  row(`durable creates of pods, ${writers} writers`, `${Math.round(pods / took).toLocaleString('en')} per second`)
  await delay(15_000)
  const before = await residentMB(pid)
  await forgetPeak(pid)
  const startMs = performance.now()
  const cpu = await cpuMs(pid)
  const bytes = await load.send({ method: 'GET', path: '/api/v1/pods' })
  const figures = [
    `${(bytes / 1e6).toFixed(0)} MB in ${((performance.now() - startMs) / 1000).toFixed(2)} s`,
    `${(((await cpuMs(pid)) - cpu) / 1000).toFixed(2)} s of CPU time`,
    `resident ${before} MB before, ${await peakMB(pid)} MB at most`,
  ]
  row(`a list of ${pods.toLocaleString('en')} pods`, figures.join('; '))
}

/**
 * The n-th event of each watch counts as the n-th change. Some changes are under way at one time: where they are stored in another
 * order than sent, the error is the time between them.
 */
async function watching({ pid, load }: ApiServer, row: Row): Promise<void> {
  const path = '/api/v1/namespaces/default/configmaps'
  const objects = 100
  const map = (i: number, text: string) => ({
    metadata: { name: `map-${i}`, labels: { app: 'bench' } },
    data: { text },
  })
  await load.many(objects, writers, (i) => ({ method: 'POST', path, body: map(i, 'x'.repeat(300)) }))
  const sentMs: number[] = []
  const latencies: number[] = []
  const first: Promise<void>[] = []
  for (let i = 0; i < watches; i++) {
    let received = -objects
    let begun = () => {}
    first.push(new Promise((resolve) => (begun = resolve)))
    await load.watch(`${path}?watch=1&labelSelector=app%3Dbench`, () => {
      received++
      if (received === 0) begun()
      if (received > 0) latencies.push(performance.now() - (sentMs[received - 1] ?? 0))
    })
  }
  await Promise.all(first)
  const changes = rate * seconds
  const cpu = await cpuMs(pid)
  const startMs = performance.now()
  const underWay = new Set<Promise<unknown>>()
  for (let change = 0; change < changes; change++) {
    const dueMs = startMs + (change * 1000) / rate
    if (performance.now() < dueMs) await delay(dueMs - performance.now())
    if (underWay.size === writers) await Promise.race(underWay)
    sentMs.push(performance.now())
    const body = { data: { change: `${change}` } }
    const sent = load.send({ method: 'PATCH', path: `${path}/map-${change % objects}`, body })
    underWay.add(sent)
    void sent.finally(() => underWay.delete(sent))
  }
  await Promise.all(underWay)
  const tookS = (performance.now() - startMs) / 1000
  for (const lateMs = performance.now() + 30_000; latencies.length < changes * watches; ) {
    if (performance.now() > lateMs) throw new Error(`${changes * watches - latencies.length} events are missing`)
    await delay(20)
  }
  const used = ((await cpuMs(pid)) - cpu) / 1000 / tookS
  const quantiles = [0.5, 0.99, 1].map((part) => `${quantile(latencies, part).toFixed(0)} ms`)
  row(
    `${watches} watches, ${(changes / tookS).toFixed(0)} changes per second: median, 99th percentile, highest`,
    `${quantiles.join(', ')}; ${(used * 100).toFixed(0)} % of a core in the controller`,
  )
}

function nodeAt(i: number): object {
  const name = `node-${i}`
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    lastHeartbeatTime: '2026-01-01T00:00:00Z',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    reason: 'KubeletReady',
    message: 'the state of the node is as it should be',
  }))
  const resources = { cpu: '4', memory: '8000000Ki', pods: '110', 'ephemeral-storage': '30000000Ki' }
  const images = Array.from({ length: 20 }, (_, image) => ({
    names: [
      `registry.example/team/image-${image}@sha256:${'0'.repeat(64)}`,
      `registry.example/team/image-${image}:1.0`,
    ],
    sizeBytes: image,
  }))
  const status = { conditions, capacity: resources, allocatable: resources, images }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'kubernetes.io/hostname': name } }, status }
}

/** No scheduler takes it. */
function podAt(i: number): object {
  const env = Array.from({ length: 8 }, (_, at) => ({ name: `VARIABLE_${at}`, value: `value-${at}` }))
  const resources = { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } }
  const containers = [{ name: 'main', image: 'registry.example/team/image:1.0', env, resources }]
  const metadata = { name: `pod-${i}`, labels: { app: `app-${i % 100}`, tier: 'bench' } }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { schedulerName: 'none', containers } }
}
