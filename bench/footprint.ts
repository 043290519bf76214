/** Measures the memory and CPU time of the agent beside its pods. `--help` prints the usage. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Pod } from '../api/pod.ts'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { apiClient } from '../daemon/api-client.ts'
import { invalidValue } from '../daemon/process/command-line.ts'
import { startDockerd } from '../test/support/dockerd.ts'
import { joinFleet, startController } from '../test/support/fleet.ts'
import { startProgram } from '../test/support/program.ts'
import { benchmarkOptions, rejectOptions } from './options/benchmark-options.ts'

const row = {
  name: 'node dist/bench/footprint.js',
  text: `Measures the memory and the CPU time of agents with several versions and settings of Node.js, all of them at the same time: each is a
node of one fleet with pods of its own that are probed over HTTP every ten seconds, on one dockerd. Prints a table. Needs root, docker.io,
busybox-static and bundles (npm run build).`,
  options: {
    agent: {
      value: 'NAME=NODE[@TREE]',
      help: 'an agent, its Node.js, and the checkout or the launcher (a file named bramble-agent) that it is started from, as 22=/path/to/node',
      repeated: true,
      default: `this Node.js=${process.execPath}`,
      defaultText: 'one with this Node.js and this tree',
    },
    pods: { value: 'N', help: 'pods of each', range: [0, 100], default: '10' },
    seconds: { value: 'S', help: 'how long they are measured', range: [1, 1_000_000], default: '300' },
  },
} as const
const values = benchmarkOptions(row)
const here = fileURLToPath(new URL('../..', import.meta.url))
const image = 'test/busybox:1'
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

type Variant = { readonly name: string; readonly node: string; readonly launcher: string }

const variants = values.agent.map(variantOf)

try {
  const folder = await mkdtemp(join(tmpdir(), 'bf-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const dockerd = await startDockerd(ending)
  await dockerd.importImage(image, ['sleep', '100000'])
  const controller = await startController(ending, { dataDir: join(folder, 'controller') })
  const api = apiClient({ ...(await readKubeconfig(controller.kubeconfig)), deadlineMs: 60_000 })
  const pids: number[] = []
  for (const [index, { node, launcher }] of variants.entries()) {
    const name = `pi-${index}`
    const dataDir = join(folder, name)
    await joinFleet(controller, name, dataDir)
    const config = `${dataDir}.yaml`
    await writeFile(config, JSON.stringify({ apiVersion: 'bramble.dev/v1alpha1', kind: 'AgentConfiguration' }))
    const agent = startProgram(
      [
        ...[launcher, 'run', '--data-dir', dataDir, '--config', config, '--docker-socket', dockerd.socket],
        ...['--healthz-port', '0', '--log-format', 'json'],
      ],
      (end) => ending.teardown(end),
      { BRAMBLE_NODE: node },
    )
    await agent.logged('Node status posted')
    pids.push(agent.pid)
    await runPods(api, name, values.pods)
  }
  await delay(60_000) // what a start leaves to do is over
  const before = await Promise.all(pids.map(processorNanoseconds))
  await delay(values.seconds * 1000)
  const after = await Promise.all(pids.map(processorNanoseconds))
  console.log(`${cpus().length} cores, ${values.pods} pods each, over ${values.seconds} s\n`)
  console.log(
    '| agent | resident | proportional | of files | anonymous | peak | processor, of one core |\n|---|---|---|---|---|---|---|',
  )
  for (const [index, { name }] of variants.entries()) {
    const percent = ((after[index] ?? 0) - (before[index] ?? 0)) / values.seconds / 1e7
    console.log(`| ${[name, ...(await memoryOf(pids[index] ?? 0)), `${percent.toFixed(2)} %`].join(' | ')} |`)
  }
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end().catch((error: unknown) => console.error(error))
}

function variantOf(text: string): Variant {
  const [, name, node, tree = here] = /^([^=]+)=([^@]+)(?:@(.+))?$/.exec(text) ?? []
  if (name === undefined || node === undefined)
    rejectOptions(row, invalidValue('--agent', text, 'use NAME=NODE or NAME=NODE@TREE'))
  return { name, node, launcher: tree.endsWith('/bramble-agent') ? tree : join(tree, 'scripts/bramble-agent') }
}

async function runPods(api: ReturnType<typeof apiClient>, node: string, count: number): Promise<void> {
  const path = '/api/v1/namespaces/default/pods'
  const probe = { httpGet: { path: '/busybox', port: 8080 }, periodSeconds: 10 }
  const container = {
    ...{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['httpd', '-f', '-p', '8080', '-h', '/bin'] },
    ...{ readinessProbe: probe, livenessProbe: probe },
  }
  for (let index = 0; index < count; index++) {
    const spec = { nodeName: node, terminationGracePeriodSeconds: 0, containers: [container] }
    const { status, body } = await api.post(path, {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `${node}-${index}` }, spec },
    })
    if (status >= 300) throw new Error(`A pod was refused: ${JSON.stringify(body)}`)
  }
  for (let tries = 0; ; tries++) {
    const { items } = (await api.get(path)).body as { readonly items: readonly Pod[] }
    const ready = items.filter(
      (pod) =>
        pod.spec.nodeName === node &&
        pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
    )
    if (ready.length === count) return
    if (tries > 300) throw new Error(`${ready.length} of ${count} pods of ${node} are Ready after ${tries} s`)
    await delay(1_000)
  }
}

/** CPU time of all threads, counted by the scheduler. */
async function processorNanoseconds(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`)
  const times = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8')))
  return times.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0)
}

async function memoryOf(pid: number): Promise<string[]> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const smaps = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
  const field = (text: string, name: string) =>
    `${((Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(text)?.[1]) * 1024) / 1e6).toFixed(1)} MB`
  return [
    field(status, 'VmRSS'),
    field(smaps, 'Pss'),
    ...['RssFile', 'RssAnon', 'VmHWM'].map((name) => field(status, name)),
  ]
}
