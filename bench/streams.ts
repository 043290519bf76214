/** Measures streams on real parts. `--help` prints the usage. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openAuthority } from '../certs/authority.ts'
import { issueServer } from '../certs/issue.ts'
import { startDockerd, type TestDockerd } from '../test/support/dockerd.ts'
import { type Controller, joinFleet, startAgent, startController } from '../test/support/fleet.ts'
import type { Program } from '../test/support/program.ts'
import { eventually } from '../test/support/wait.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'
import { streamCeiling } from './streams/ceiling.ts'
import { type Cost, costOf, endedChildrenCpuMs, engineCpuMs, type Groups, ownCpuMs } from './streams/cpu-times.ts'
import { dockerAlone } from './streams/docker-alone.ts'
import { preparedServer } from './streams/prepared-server.ts'
import { copied, forwarded, printed } from './streams/transfers.ts'

const { mib, execs, rounds } = benchmarkOptions({
  name: 'node dist/bench/streams.js',
  text: `Measures streams through kubectl, a controller, an agent and Docker on one machine, and in the same run what they are made of: a plain
TLS socket, a bare relay, Docker without an agent, and kubectl without a node. Prints tables. Takes about two minutes. Needs root, kubectl, docker.io,
busybox-static and bundles (npm run build).`,
  options: {
    mib: { value: 'N', help: 'MiB to transfer in each direction', range: [1, 100_000], default: '200' },
    execs: { value: 'N', help: 'commands to run, one after the other', range: [1, 100_000], default: '20' },
    rounds: {
      value: 'N',
      help: 'transfers of each kind, one after the other; the fastest is printed',
      range: [1, 1_000],
      default: '1',
    },
  },
})
const image = 'test/busybox:1'
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

type Fleet = {
  readonly folder: string
  readonly dockerd: TestDockerd
  readonly controller: Controller
  readonly agent: Program
}

/** With a pod that has a file and serves it, and one that has written a log. */
async function startFleet(): Promise<Fleet> {
  const folder = await mkdtemp(join(tmpdir(), 'bs-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const dockerd = await startDockerd(ending)
  await dockerd.importImage(image)
  const controller = await startController(ending, { dataDir: join(folder, 'controller') })
  const dataDir = join(folder, 'pi-1')
  await joinFleet(controller, 'pi-1', dataDir)
  const settings = { containerLogMaxSize: `${mib * 2}Mi` }
  const agent = await startAgent(ending, { dataDir, dockerSocket: dockerd.socket, settings })
  await controller.nodesReady('pi-1')
  const file = `head -c ${mib * 2 ** 20} /dev/zero > /tmp/file`
  const line = `head -c ${mib * 2 ** 20} /dev/zero | tr '\\0' x | fold -w 1000`
  const pods = [
    ['files', `${file}; exec httpd -f -p 8080 -h /tmp`],
    ['logs', `${line}; exec sleep 1000`],
  ] as const
  for (const [name, script] of pods) {
    const containers = [{ name: 'main', image, command: ['sh', '-c', script] }]
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers } }
    await controller.kubectlWith(JSON.stringify(pod), 'apply', '-f', '-')
    await controller.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=80s')
  }
  const page = ['wget', '-qO-', 'http://127.0.0.1:8080/']
  await eventually('files are there', async () => {
    const { stderr } = await controller.tryKubectl('exec', 'files', '--', ...page)
    return !/refused/.test(stderr)
  })
  await settled(() => controller.kubectl('logs', 'logs', '--tail=1'))
  await delay(3_000)
  return { folder, dockerd, controller, agent }
}

/** Until the same is read twice. */
async function settled(read: () => Promise<string>): Promise<void> {
  let before = ''
  await eventually('the log is written', async () => {
    const now = await read()
    const isSame = now !== '' && now === before
    before = now
    await delay(500)
    return isSame
  })
}

const row = (what: string, figure: string) => console.log(`| ${what} | ${figure} |`)

async function measureMemory({ controller, agent }: Fleet): Promise<void> {
  const idleKiB = await residentKiB(agent.pid)
  const args = ['--kubeconfig', controller.kubeconfig, 'exec', '-i', 'files', '--', 'cat']
  const idle = spawn('kubectl', args, { stdio: ['pipe', 'pipe', 'ignore'] })
  idle.stdin.write('x')
  await once(idle.stdout, 'data')
  await delay(5_000)
  const openKiB = await residentKiB(agent.pid)
  idle.kill('SIGKILL')
  await delay(1_000)
  row('agent resident: idle, with one idle stream', `${idleKiB} KiB, ${openKiB - idleKiB} KiB more`)
}

async function measureRoundTrips({ controller }: Fleet): Promise<void> {
  const times: number[] = []
  for (let i = 0; i < execs; i++) {
    const beganMs = performance.now()
    await controller.kubectl('exec', 'files', '--', 'true')
    times.push(performance.now() - beganMs)
  }
  times.sort((a, b) => a - b)
  const figures = `${times[execs >> 1]?.toFixed(0)} ms, ${times.at(-1)?.toFixed(0)} ms`
  row(`kubectl exec -- true, median and highest of ${execs}`, figures)
}

/** Names and transfers of the table, in its order. A group of processes that a row leaves out takes no part in it. */
type Transfer = { readonly what: string; readonly groups: Groups; readonly run: () => Promise<number> }

async function transfersOf({ folder, dockerd, controller, agent }: Fleet): Promise<readonly Transfer[]> {
  const engine = { Docker: () => engineCpuMs(dirname(dockerd.socket)) }
  const reader = { reader: async () => cpuMsHere() }
  const kubectl = { kubectl: endedChildrenCpuMs, ...reader }
  const all = {
    ...engine,
    agent: () => ownCpuMs(agent.pid),
    controller: () => ownCpuMs(controller.program.pid),
    ...kubectl,
  }
  const { certificate: cert, key } = issueServer(await openAuthority(join(folder, 'prepared'), Date.now()), {
    names: ['localhost'],
    nowMs: Date.now(),
  })
  const prepared = await preparedServer(folder, { cert, key, mib })
  ending.teardown(async () => prepared.close())
  const server = { server: () => ownCpuMs(prepared.pid), ...kubectl }
  const options = ['--kubeconfig', controller.kubeconfig]
  const docker = dockerAlone(dockerd.socket)
  const [files, logs] = await Promise.all([containerOf(controller, 'files'), containerOf(controller, 'logs')])
  const to = join(folder, 'copied')
  const exec = ['exec', 'files', '--', 'cat', '/tmp/file']
  return [
    { what: 'kubectl logs', groups: all, run: () => printed(options, 'logs', 'logs') },
    { what: '… Docker alone', groups: { ...engine, ...reader }, run: () => docker.log(logs, mib) },
    { what: '… kubectl alone', groups: server, run: () => printed(prepared.options, 'logs', 'prepared') },
    { what: 'kubectl exec -- cat', groups: all, run: () => printed(options, ...exec) },
    { what: '… Docker alone', groups: { ...engine, ...reader }, run: () => docker.cat(files, '/tmp/file', mib) },
    { what: '… kubectl alone', groups: server, run: () => printed(prepared.options, 'exec', 'prepared', '--', 'cat') },
    { what: 'kubectl cp from a pod', groups: all, run: () => copied(options, 'files:/tmp/file', to) },
    { what: 'kubectl port-forward', groups: all, run: () => forwarded(options, 'files', '/file') },
    { what: '… kubectl alone', groups: server, run: () => forwarded(prepared.options, 'prepared', '/file') },
  ]
}

async function containerOf(controller: Controller, pod: string): Promise<string> {
  const id = await controller.kubectl('get', 'pod', pod, '-o', 'jsonpath={.status.containerStatuses[0].containerID}')
  return id.replace('docker://', '')
}

async function measure(): Promise<void> {
  const fleet = await startFleet()
  const [load = 0] = loadavg()
  console.log(`Node ${process.version}, ${cpus().length} cores, load ${load.toFixed(1)}, ${mib} MiB\n`)
  console.log('| | |\n| --- | --- |')
  await measureMemory(fleet)
  await measureRoundTrips(fleet)
  const ceiling = await streamCeiling(fleet.folder)
  const relay = () =>
    ceiling.relay(mib, ([controller = 0, agent = 0], run) =>
      costOf({ agent: () => ownCpuMs(agent), controller: () => ownCpuMs(controller) }, run),
    )
  const costs = (await transfersOf(fleet)).map(({ what, groups, run }) => ({ what, cost: () => costOf(groups, run) }))
  const plain = { what: 'plain TLS socket between two processes', cost: () => costOf({}, () => ceiling.plainTls(mib)) }
  const measured = await fastestOf([plain, { what: 'bare relay of as many processes', cost: relay }, ...costs])
  console.log('\n| | MiB/s | ratio | CPU time per MiB, in ms |\n| --- | --- | --- | --- |')
  for (const { what, cost } of measured) printCost(what, cost, measured[0]?.cost.perSecond ?? 0)
}

type Measured = { readonly what: string; readonly cost: Cost }

/** In turn, so that what else runs on the machine disturbs all of them alike. */
async function fastestOf(
  kinds: readonly { readonly what: string; readonly cost: () => Promise<Cost> }[],
): Promise<readonly Measured[]> {
  const fastest: Measured[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [i, { what, cost }] of kinds.entries()) {
      const one = await cost()
      if (one.perSecond > (fastest[i]?.cost.perSecond ?? 0)) fastest[i] = { what, cost: one }
    }
  }
  return fastest
}

/** The sum of CPU times bounds the rate: the cores of this machine have only so much of it. */
function printCost(what: string, { perSecond, cpuMs }: Cost, plain: number): void {
  const parts = Object.entries(cpuMs).map(([name, ms]) => `${name} ${(ms / mib).toFixed(1)}`)
  const sum = Object.values(cpuMs).reduce((all, ms) => all + ms, 0) / mib
  const total = parts.length === 0 ? '' : `${parts.join(', ')}; all ${sum.toFixed(1)}`
  console.log(`| ${what} | ${perSecond.toFixed(0)} | ${(perSecond / plain).toFixed(2)} | ${total} |`)
}

function cpuMsHere(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function residentKiB(pid: number): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
}

try {
  await measure()
} finally {
  for (const end of ends.reverse()) await end()
}
