/** Measures the cost of a node for the controller, over a real network connection. `--help` prints the usage. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../agent/testing/free-port.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import type { Command } from '../daemon/process/command.ts'
import { printText, readArguments } from '../daemon/process/command-line.ts'
import { slowness } from '../daemon/testing/turn-budget.ts'
import { type FleetLoad, prepareFleet, startLoads } from './fleet/fleet-load.ts'
import { type Front, startFront } from './fleet/front.ts'
import type { Answer, Order } from './fleet/load.ts'
import { type Members, startMembers } from './fleet/members.ts'
import { nodeName } from './fleet/node.ts'
import { type Ports, type RunningServer, startServer } from './fleet/server.ts'

const whole = [1, 1_000_000] as const
const row = {
  name: 'node dist/bench/fleet.js',
  about: 'what a connected fleet costs the controller',
  text: `Starts a controller, connects a fleet to it over mutual TLS, one connection a node, each with a status of about 11 kB, and
prints what that costs the controller. CPU and disk are those of the controller's process in /proc; the load runs in
processes of its own. Certificates are made before anything is measured.

How slow the machine is, beside the reference machine, is printed at the beginning and at the end.

Nodes send heartbeats all the time, as agents do. A phase (connect, reconnect, return) is measured from its beginning until
the CPU use of the controller no longer falls, for at most two minutes after the work. Then ten seconds with nothing but the
usual heartbeats are measured. Two things are subtracted from the CPU time of a phase: after the work, the CPU use of those
ten seconds; during the work, for each heartbeat that was sent, the CPU time of one among many others, which the heartbeat
phase measures. The CPU time without any subtraction is printed, too.

With a Mosquitto in front, CPU time and memory are those of the controller and of Mosquitto together; the share of Mosquitto is printed
beside them. Nodes stay connected to it when the controller is killed. CPU time and memory of etcd are printed apart.`,
  forms: { '': '' },
  options: {
    nodes: { value: 'N', help: 'number of nodes', range: whole, default: '1000' },
    pods: { value: 'N', help: 'pods of each', range: [0, 1000], default: '3' },
    heartbeats: {
      value: 'S',
      help: 'seconds for which each node sends further heartbeats',
      range: whole,
      default: '20',
    },
    'beat-every': {
      value: 'S',
      help: 'interval of these in seconds; each node also sends one every 10 s all the time',
      range: whole,
      default: '10',
    },
    processes: { value: 'N', help: 'processes of the load', range: [1, 64], defaultText: '1 for each 5000 nodes' },
    'at-once': { value: 'N', help: 'nodes that connect at a time, in each process', range: whole, default: '64' },
    broker: {
      value: 'BROKER',
      help: 'what nodes connect to; both: one after the other',
      choices: ['embedded', 'mosquitto', 'both'],
      default: 'embedded',
    },
    store: {
      value: 'STORE',
      help: 'where the objects are; etcd: three members on this machine, without fsync',
      choices: ['sqlite', 'etcd'],
      default: 'sqlite',
    },
    rest: {
      value: 'S',
      help: 'seconds with only the usual heartbeats, before memory is read and after the return',
      range: [0, 100_000],
      default: '0',
    },
    'without-reconnect': { help: 'leave out the phase in which all nodes reconnect' },
    'same-images': { help: 'all nodes have the same images; without it no two have one in common' },
    'one-address': { help: 'connect all nodes from one address, as behind one router' },
    controller: {
      value: 'FILE',
      help: 'main.js of a build',
      defaultText: 'the bundle (node dist/scripts/build.js) with the settings of its launcher',
    },
    launcher: {
      value: 'FILE',
      help: 'launcher of another build, as usr/lib/bramble-controller/bramble-controller of an unpacked package, with its own Node.js',
    },
    'node-option': {
      value: 'OPTION',
      help: 'with --controller: option of Node.js or V8 for it, as --max-semi-space-size=4',
      repeated: true,
    },
    'cpu-prof': {
      value: 'DIR',
      help: 'with --controller: write a profile of it there for each phase that ends with SIGTERM',
    },
  },
} as const satisfies Command

const read = readArguments(row, process.argv.slice(2))
if (read.want !== 'act') {
  const status = printText(read, { stdout: (text) => console.log(text), stderr: (text) => console.error(text) })
  process.exit(status)
}
const { values } = read
const { nodes, pods } = values
const processes = values.processes ?? Math.ceil(nodes / 5000)
const folder = await mkdtemp(join(tmpdir(), 'bramble-fleet-'))
const config = join(folder, 'config.yaml')
let dataDir = ''
const main = values.controller
/** Samples more often than these keep a controller at rest from being at rest. */
const sampling = ['--cpu-prof', '--cpu-prof-interval=4000']
const profiling = values['cpu-prof'] === undefined ? [] : [...sampling, `--cpu-prof-dir=${values['cpu-prof']}`]
/** The longest wait for the controller to be at rest after a phase, and how long it is measured there. */
const [settleMs, quietMs] = [120_000, 10_000]
let load: FleetLoad | undefined
let server: RunningServer | undefined
let front: Front | undefined
let members: Members | undefined

try {
  printSlowness()
  if (values.store === 'etcd') members = await startMembers()
  for (const broker of values.broker === 'both' ? (['embedded', 'mosquitto'] as const) : [values.broker]) {
    dataDir = join(folder, broker)
    await mkdir(dataDir, { recursive: true })
    const kind = { apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration' }
    const settings = { ...kind, allocateNodeCIDRs: false, podNetwork: 'node' }
    const mqttBroker = broker === 'mosquitto' ? `mqtts://localhost:${await freePort()}` : undefined
    await writeFile(config, JSON.stringify({ ...settings, ...members?.fields(broker), mqttBroker }))
    if (values.broker === 'both') console.log(`== ${broker}`)
    await measure(broker)
  }
  printSlowness()
} finally {
  load?.kill()
  await server?.end('SIGKILL').catch(() => undefined)
  await front?.end().catch(() => undefined)
  await members?.end()
  await rm(folder, { recursive: true, force: true })
}

async function ordered(order: Order): Promise<Omit<Answer, 'done'>> {
  if (load === undefined) throw new Error('The load was not started')
  return load.ordered(order)
}

async function measure(broker: 'embedded' | 'mosquitto'): Promise<void> {
  const start = (node: string | undefined, ports = { api: 0, mqtt: 0 }) =>
    startServer({
      ...{ main, launcher: values.launcher, dataDir, config, ports },
      nodeOptions: [...values['node-option'], ...profiling],
      ...(broker === 'mosquitto' && {
        async front({ mqtt: port }: Ports) {
          front ??= await startFront({ files: join(dataDir, 'mosquitto'), port, node })
          return front
        },
      }),
    })
  const stopFront = async () => {
    await front?.end()
    front = undefined
  }
  server = await start(undefined)
  await server.idle()
  const baseBytes = server.residentBytes()
  await server.end('SIGTERM')
  await stopFront()
  const certificates = await prepareFleet({ folder, dataDir, nodes, pods, etcd: members?.place(broker) })
  server = await start(nodeName(nodes - 1))
  await server.idle()
  const { ports } = server
  load = await startLoads({
    ...{ ...certificates, port: ports.mqtt, nodes, pods, processes },
    ...{
      sameImages: values['same-images'],
      oneAddress: values['one-address'],
      atOnce: values['at-once'],
      beatMs: values['beat-every'] * 1000,
    },
  })

  const first = await phase(server, { order: 'connect' })
  const beats = await cost(server, () => ordered({ order: 'beat', seconds: values.heartbeats }))
  const { quiet } = first
  const perSecond = { cpuMs: quiet.cpuMs / quiet.seconds, beats: quiet.beats / quiet.seconds }
  const further = beats.beats - perSecond.beats * beats.seconds
  const beatMs = Math.max(0, (beats.cpuMs - perSecond.cpuMs * beats.seconds) / further)
  print('first connect', first, beatMs)
  if (!values['without-reconnect']) {
    print('reconnect, nothing changed', await phase(server, { order: 'reconnect' }), beatMs)
  }
  console.log(
    `heartbeat: ${(beatMs * 1000).toFixed(0)} µs server CPU each${front === undefined ? '' : `, with all others Mosquitto ${((beats.frontMs * 1000) / beats.beats).toFixed(0)}`} (${Math.round(further)} in ${beats.seconds.toFixed(0)} s beside the usual ones), ${kB(beats.writtenBytes)} written`,
  )
  console.log(
    `at rest: ${(perSecond.cpuMs / 10).toFixed(1)} % of a core with ${perSecond.beats.toFixed(0)} heartbeats a second, ${((quiet.cpuMs * 1000) / quiet.beats).toFixed(0)} µs for each with everything else`,
  )
  await rest(server)
  const residentBytes = server.residentBytes()
  const ofFront = front === undefined ? '' : `, Mosquitto ${mB(front.residentBytes())}`
  console.log(
    `resident: ${mB(residentBytes)}${ofFront}${ofMembers()}, ${((residentBytes - baseBytes) / nodes / 1000).toFixed(0)} kB a node above ${mB(baseBytes)} without nodes`,
  )

  const killedMs = performance.now()
  await server.end('SIGKILL')
  server = await start(nodeName(nodes - 1), ports)
  const [startedMs, startCpuMs] = [performance.now() - killedMs, server.cpuMs()]
  const back = await phase(server, { order: 'await' })
  print('return after SIGKILL', back, beatMs)
  const all = (startedMs + back.work.seconds * 1000) / 1000
  console.log(
    `all back ${all.toFixed(1)} s after SIGKILL (the controller was ready after ${(startedMs / 1000).toFixed(1)} s and ${startCpuMs.toFixed(0)} ms CPU), ${mB(server.residentBytes())} resident${ofMembers()}`,
  )
  await rest(server)
  await ordered({ order: 'end' })
  load = undefined
  await server.end('SIGTERM')
  await stopFront()
  server = undefined
}

type Cost = {
  readonly cpuMs: number
  /** The share of Mosquitto. */
  readonly frontMs: number
  /** CPU time of the etcd members, which is in none of the others. */
  readonly etcdMs: number
  readonly writtenBytes: number
  readonly seconds: number
  /** Heartbeats that were sent meanwhile, but for those with which nodes announce themselves. */
  readonly beats: number
}
type Phase = { readonly work: Cost; readonly settling: Cost; readonly quiet: Cost; readonly failures: number }

/** What the controller spends during the work. */
async function cost(of: RunningServer, work: () => Promise<unknown>): Promise<Cost> {
  const { beats: before } = await ordered({ order: 'count' })
  const [cpuMs, frontMs, etcdMs] = [of.cpuMs(), of.front?.cpuMs() ?? 0, members?.cpuMs() ?? 0]
  const [written, startMs] = [of.writtenBytes(), performance.now()]
  await work()
  const spent = {
    cpuMs: of.cpuMs() - cpuMs,
    frontMs: (of.front?.cpuMs() ?? 0) - frontMs,
    etcdMs: (members?.cpuMs() ?? 0) - etcdMs,
    writtenBytes: of.writtenBytes() - written,
  }
  const seconds = (performance.now() - startMs) / 1000
  const { beats } = await ordered({ order: 'count' })
  return { ...spent, seconds, beats: beats - before }
}

/** What the order costs, what follows it until the controller is at rest again, and what that rest costs. */
async function phase(of: RunningServer, order: Order): Promise<Phase> {
  const work = await cost(of, () => ordered(order))
  const settling = await cost(of, async () => {
    if (await of.steady(settleMs)) return
    console.error(`${order.order}: the CPU use of the controller still falls after ${settleMs / 1000} s`)
  })
  const quiet = await cost(of, () => clock.sleep(quietMs))
  return { work, settling, quiet, failures: (await ordered({ order: 'count' })).failures }
}

/** Figures of two machines, or of two days of a virtual one, can be compared with it. */
function printSlowness(): void {
  console.log(
    `this machine now: ${slowness(50).toFixed(1)} times as slow as the reference machine (daemon/testing/turn-budget.ts)`,
  )
}

/** V8 collects the garbage of a burst up to 100 s later: until then it counts as resident. */
async function rest(of: RunningServer): Promise<void> {
  if (values.rest === 0) return
  const { cpuMs, etcdMs, seconds, beats } = await cost(of, () => clock.sleep(values.rest * 1000))
  const percent = (ms: number) => `${(ms / seconds / 10).toFixed(1)} % of a core`
  const ofEtcd = members === undefined ? '' : `, etcd ${percent(etcdMs)}${ofMembers()}`
  console.log(
    `rest of ${seconds.toFixed(0)} s: ${percent(cpuMs)} with ${(beats / seconds).toFixed(0)} heartbeats a second, ${mB(of.residentBytes())} resident at its end${ofEtcd}`,
  )
}

function print(what: string, { work, settling, quiet, failures }: Phase, beatMs: number): void {
  const wholeMs = work.cpuMs + settling.cpuMs
  const netMs = wholeMs - work.beats * beatMs - (quiet.cpuMs / quiet.seconds) * settling.seconds
  const [each, whole] = [(netMs / nodes).toFixed(2), (wholeMs / nodes).toFixed(2)]
  const seconds = (work.seconds + settling.seconds).toFixed(0)
  const written = kB(work.writtenBytes + settling.writtenBytes)
  // Behind Mosquitto no node was away.
  const pace = work.seconds < 0.1 ? '' : ` (${(nodes / work.seconds).toFixed(0)} a second)`
  console.log(
    `${what}: ${each} ms server CPU a node (${whole}${share(work.frontMs + settling.frontMs)}${etcdShare(work.etcdMs + settling.etcdMs)} with ${work.beats + settling.beats} heartbeats in ${seconds} s), ${written} written, ${work.seconds.toFixed(1)} s for ${nodes} nodes${pace}, ${failures} failed attempts so far`,
  )
}

/** CPU time of Mosquitto in a phase, for each node. */
function share(frontMs: number): string {
  return front === undefined ? '' : `, Mosquitto ${(frontMs / nodes).toFixed(2)},`
}

/** CPU time of etcd in a phase, for each node. */
function etcdShare(ms: number): string {
  return members === undefined ? '' : `, etcd ${(ms / nodes).toFixed(2)},`
}

function ofMembers(): string {
  return members === undefined ? '' : `, etcd ${members.residentBytes().map(mB).join(' + ')}`
}

function kB(bytes: number): string {
  return `${Math.round(bytes / 1000)} kB`
}

function mB(bytes: number): string {
  return `${Math.round(bytes / 1_000_000)} MB`
}
