/** Measures what a large pod costs the other pods of its node. `--help` prints the usage. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { PodStatus } from '../../api/pod.ts'
import { readKubeconfig } from '../../broker-controller/commands/connection/kubeconfig.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { startDockerd } from '../../test/support/dockerd.ts'
import { machineNetwork } from '../../test/support/machine-network.ts'
import { median } from '../figures/median.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'
import { type NodeInSpace, nodeInSpace } from './node-in-space.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/network/contents.js',
  text: `Starts and stops a pod on a node, alone, and then beside a pod that mounts large ConfigMaps. Prints how long both take, the bytes on the wire
of the node, and the bytes that its agent writes to disk, for each start and stop. Needs root, ip, docker.io, and bundles (npm run build).`,
  options: {
    tree: { value: 'DIR', help: 'measure the programs of this checkout in the same run', repeated: true },
    megabytes: { value: 'N', help: 'ConfigMaps of 1 MB that the other pod mounts', range: [1, 50], default: '5' },
    pods: { value: 'N', help: 'further pods on the node that only run', range: [0, 100], default: '0' },
    rounds: { value: 'N', help: 'starts and stops, one after the other', range: [1, 1000], default: '5' },
  },
})
const image = 'test/busybox:1'
const namespace = '/api/v1/namespaces/default'
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

try {
  const folder = await mkdtemp(join(tmpdir(), 'bc-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const here = fileURLToPath(new URL('../../..', import.meta.url))
  const dockerd = await startDockerd(ending)
  await dockerd.importImage(image, ['sleep', '100000'])
  const network = await machineNetwork(ending)
  const [load = 0] = loadavg()
  console.log(`${cpus().length} cores, load ${load.toFixed(1)}, medians of ${values.rounds}\n`)
  console.log('| | start | stop | bytes on the wire | bytes written |\n|---|---|---|---|---|')
  for (const [index, tree] of [...values.tree.map((one) => resolve(one)), here].entries()) {
    const name = tree === here ? 'this tree' : tree
    const node = await nodeInSpace({
      ...{ folder: join(folder, String(index)), index, docker: dockerd.socket, network, tree },
      teardown: ending.teardown,
    })
    await measure(name, node)
  }
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end().catch((error: unknown) => console.error(error))
}

async function measure(name: string, node: NodeInSpace): Promise<void> {
  const client = apiClient({ ...(await readKubeconfig(node.kubeconfig)), deadlineMs: 60_000 })
  for (let at = 0; at < values.pods; at++) await create(client, 'pods', aPod(`running-${at}`, node.nodeName))
  for (let at = 0; at < values.pods; at++) await running(client, `running-${at}`)
  await round(client, node, 'warm')
  print(`${name}, alone`, await rounds(client, node, 'alone'))
  const maps = Array.from({ length: values.megabytes }, (_, at) => `large-${at}`)
  for (const map of maps) {
    const data = { text: map.padEnd(1_000_000, '.') }
    await create(client, 'configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: map }, data })
  }
  await create(client, 'pods', aPod('large', node.nodeName, maps))
  await running(client, 'large')
  await round(client, node, 'warm')
  print(`${name}, beside ${values.megabytes} MB of ConfigMaps`, await rounds(client, node, 'beside'))
}

type Round = { readonly startMs: number; readonly stopMs: number; readonly wire: number; readonly written: number }

async function rounds(client: ApiClient, node: NodeInSpace, name: string): Promise<readonly Round[]> {
  const all: Round[] = []
  for (let at = 0; at < values.rounds; at++) all.push(await round(client, node, `${name}-${at}`))
  return all
}

async function round(client: ApiClient, node: NodeInSpace, name: string): Promise<Round> {
  // The last write of the agent, and its last acknowledgements, follow the end of the pod.
  await delay(3000)
  const [wire, written] = [await node.count(), await writtenBy(node.agent.pid)]
  const beganMs = performance.now()
  await create(client, 'pods', aPod(name, node.nodeName))
  await running(client, name)
  const ranMs = performance.now()
  await client.delete(`${namespace}/pods/${name}`)
  await until(async () => (await client.get(`${namespace}/pods/${name}`)).status === 404)
  const goneMs = performance.now()
  await delay(3000)
  return {
    startMs: ranMs - beganMs,
    stopMs: goneMs - ranMs,
    wire: (await node.count()).ipBytes - wire.ipBytes,
    written: (await writtenBy(node.agent.pid)) - written,
  }
}

function aPod(name: string, nodeName: string, maps: readonly string[] = []) {
  const volumes = maps.map((map) => ({ name: map, configMap: { name: map } }))
  const volumeMounts = maps.map((map) => ({ name: map, mountPath: `/${map}` }))
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', volumeMounts }
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
    spec: { nodeName, terminationGracePeriodSeconds: 0, containers: [container], volumes },
  }
}

async function create(client: ApiClient, resource: string, body: object): Promise<void> {
  const { status, body: answer } = await client.post(`${namespace}/${resource}`, body)
  if (status !== 201) throw new Error(`Not created: ${status} ${JSON.stringify(answer)}`)
}

function running(client: ApiClient, name: string): Promise<void> {
  let status: PodStatus | undefined
  const isRunning = async () => {
    const { body } = await client.get(`${namespace}/pods/${name}`)
    status = (body as { readonly status?: PodStatus }).status
    return status?.phase === 'Running'
  }
  return until(isRunning).catch((cause: unknown) => {
    throw new Error(`Pod ${name} does not run: ${JSON.stringify(status)}`, { cause })
  })
}

/** What the process has sent to the disk; where files are in memory that is 0. */
async function writtenBy(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/io`, 'utf8')
  return Number(/^write_bytes: (\d+)$/m.exec(text)?.[1])
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const lastMs = performance.now() + 120_000
  while (!(await holds())) {
    if (performance.now() > lastMs) throw new Error('It does not come')
    await delay(10)
  }
}

function print(name: string, all: readonly Round[]): void {
  const figure = (of: (one: Round) => number) => Math.round(median(all.map(of))).toLocaleString('en')
  const cells = [
    `${figure(({ startMs }) => startMs)} ms`,
    `${figure(({ stopMs }) => stopMs)} ms`,
    figure(({ wire }) => wire),
    figure(({ written }) => written),
  ]
  console.log(`| ${[name, ...cells].join(' | ')} |`)
}
