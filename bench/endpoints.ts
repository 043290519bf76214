/** Measures the CPU time of the controller of endpoints. `--help` prints the usage. */
import { aNode } from '../api/testing/builders.ts'
import { endpointsController } from '../broker-controller/controllers/endpoints/endpoints-controller.ts'
import { memoryStore } from '../broker-controller/store/memory-store.ts'
import type { Store, StoredPod } from '../broker-controller/store/store.ts'
import { workloadNeeds } from '../broker-controller/testing/workload-world.ts'
import { openLog } from '../daemon/log.ts'
import { runLoops } from '../daemon/run.ts'
import { fakeClock } from '../daemon/testing/fake-clock.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const nodes = 200
const services = 1000
const podsOfEach = 10
const changes = 2000
const restMinutes = 10

benchmarkOptions({
  name: 'node dist/bench/endpoints.js',
  text: `Measures the CPU time of the controller of endpoints with ${services} Services of ${podsOfEach} pods each in one namespace: at its start,
with pods that become ready and not ready one by one, with changes that concern no Service, and at rest. All is in memory, with a clock that
the benchmark advances; it plays the pods itself, and does not count that time. Prints a table.`,
  options: {},
})
const clock = fakeClock()
const store: Store = memoryStore({ clock })
const rows: [string, string][] = []
await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
for (let at = 0; at < nodes; at++) await store.create('nodes', aNode({ name: `pi-${at}` }))
for (let at = 0; at < services; at++) await createService(at)
const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
const stop = new AbortController()
const ended = runLoops([endpointsController(workloadNeeds(store, clock, log))], stop.signal, log)

const started = await cpuOf(() => clock.advance(5000))
rows.push([
  `start with ${services} Services of ${podsOfEach} pods each, until all have slices`,
  `${started.toFixed(0)} ms`,
])
rows.push([`a pod becomes ready or not ready`, await perChange(withOtherReadiness)])
rows.push([`a pod changes in what concerns no Service`, await perChange(withNote)])
const before = await store.version()
const rest = await cpuOf(() => clock.advance(restMinutes * 60_000))
const writes = Number(await store.version()) - Number(before)
rows.push([`at rest, a minute`, `${(rest / restMinutes).toFixed(2)} ms, ${writes} writes`])
stop.abort()
await ended
console.log(rows.map(([what, figure]) => `| ${what} | ${figure} |`).join('\n'))

/** CPU time of the controller for each of the changes, and its writes. */
async function perChange(change: (pod: StoredPod, turn: number) => StoredPod): Promise<string> {
  const pods = (await store.list('pods')).items
  let ms = 0
  let writes = 0
  for (let turn = 0; turn < changes; turn++) {
    const { metadata } = pods[(turn * 7919) % pods.length] ?? {}
    const pod = await store.get('pods', { namespace: 'default', name: metadata?.name ?? '' })
    if (pod === undefined) throw new Error('The pod is gone')
    await store.update('pods', change(pod, turn))
    const version = await store.version()
    ms += await cpuOf(() => clock.advance(50))
    writes += Number(await store.version()) - Number(version)
  }
  return `${(ms / changes).toFixed(2)} ms, ${(writes / changes).toFixed(1)} writes`
}

async function createService(at: number): Promise<void> {
  const name = `web-${at}`
  const labels = { app: name, tier: 'front' }
  const metadata = { namespace: 'default', name }
  const spec = {
    selector: { app: name },
    ports: [{ port: 80, targetPort: 8080, protocol: 'TCP' }],
    clusterIP: '10.96.0.1',
  }
  await store.create('services', { apiVersion: 'v1', kind: 'Service', metadata, spec })
  for (let pod = 0; pod < podsOfEach; pod++) {
    const podIP = `10.${64 + (at >> 8)}.${at & 255}.${pod + 1}`
    await store.create('pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: 'default', name: `${name}-${pod}`, labels },
      spec: { containers: [{ name: 'main', image: 'web:1' }], nodeName: `pi-${(at + pod) % nodes}` },
      status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }], conditions: [{ type: 'Ready', status: 'True' }] },
    })
  }
}

function withOtherReadiness(pod: StoredPod): StoredPod {
  const status = pod.status?.conditions?.[0]?.status === 'True' ? 'False' : 'True'
  return { ...pod, status: { ...pod.status, conditions: [{ type: 'Ready', status }] } }
}

function withNote(pod: StoredPod, turn: number): StoredPod {
  return { ...pod, metadata: { ...pod.metadata, annotations: { turn: String(turn) } } }
}

/** CPU ms of this process. */
async function cpuOf(act: () => Promise<void>): Promise<number> {
  const from = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(from)
  return (user + system) / 1000
}
