/** Measures the CPU time of the controllers for fleets of several sizes. `--help` prints the usage. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { aLease, aNode, aPod } from '../api/testing/builders.ts'
import { nodeLifecycleController } from '../broker-controller/controllers/node-lifecycle/node-lifecycle-controller.ts'
import { defaultNodeLifecycleSettings } from '../broker-controller/controllers/node-lifecycle/node-lifecycle-settings.ts'
import { podCleanupController } from '../broker-controller/controllers/pods/pod-cleanup-controller.ts'
import { taintEvictionController } from '../broker-controller/controllers/pods/taint-eviction-controller.ts'
import { scheduler } from '../broker-controller/scheduler/scheduler.ts'
import { eventRecorder } from '../broker-controller/store/event-recorder.ts'
import { memoryStore } from '../broker-controller/store/memory-store.ts'
import type { Store } from '../broker-controller/store/store.ts'
import { rfc3339, rfc3339Micro } from '../daemon/clock.ts'
import { openLog } from '../daemon/log.ts'
import { runLoops } from '../daemon/run.ts'
import { type FakeClock, fakeClock } from '../daemon/testing/fake-clock.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const podsPerNode = 10
const zones = 10
const placements = 2_000
const passCount = 40
const { nodeMonitorPeriodMs: periodMs } = defaultNodeLifecycleSettings

type Figures = {
  readonly nodes: number
  readonly idlePassMs: number
  readonly heartbeatUs: number
  readonly changingPassMs: number
  readonly zoneLossMs: number
  readonly placementsPerSecond: number
  readonly residentMB: number
}
type World = { readonly store: Store; readonly clock: FakeClock; readonly names: readonly string[] }

const { nodes: sizes } = benchmarkOptions({
  name: 'node dist/bench/control-plane.js',
  text: `Measures the CPU time of the controllers for fleets of several sizes, with ${podsPerNode} pods on each node. All is in memory, with a clock
that the benchmark advances, so only Bramble's own work is measured. Each size is measured in a process of its own. Prints a table.`,
  options: {
    // With fewer there is no room for the pods that are placed.
    nodes: {
      value: 'N',
      help: 'number of nodes',
      range: [100, 1_000_000],
      repeated: true,
      default: ['1000', '5000', '10000'],
    },
  },
})
if (process.env.BENCH_ONE === '1') console.log(JSON.stringify(await measured(sizes[0] ?? 0)))
else console.log(table(await eachInItsOwnProcess(sizes)))

/** So that one size does not pay for the memory of another. */
async function eachInItsOwnProcess(wanted: readonly number[]): Promise<readonly Figures[]> {
  const script = fileURLToPath(import.meta.url)
  const options = { env: { ...process.env, BENCH_ONE: '1' }, timeout: 900_000 }
  const rows: Figures[] = []
  for (const nodes of wanted) {
    const args = ['--expose-gc', script, '--nodes', String(nodes)]
    const { stdout } = await promisify(execFile)(process.execPath, args, options)
    rows.push(JSON.parse(stdout) as Figures)
  }
  return rows
}

async function measured(nodes: number): Promise<Figures> {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const world: World = { store, clock, names: Array.from({ length: nodes }, (_, i) => `pi-${i}`) }
  const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
  const needs = { store, clock, log, events: eventRecorder({ store, clock }), random: Math.random }
  await settleFleet(world)
  const stop = new AbortController()
  const controllers = [nodeLifecycleController, taintEvictionController, podCleanupController, scheduler]
  const ended = runLoops(
    controllers.map((controller) => controller(needs)),
    stop.signal,
    log,
  )
  await clock.advance(periodMs)
  await heartbeats(world, world.names)
  const idle = await passes(world, async () => undefined)
  const changing = await passes(world, (turn) => pressHundredth(world, turn % 2 === 0 ? 'True' : 'False'))
  const residentMB = residentNow()
  const placementsPerSecond = await placeMany(world)
  const zoneLossMs = await loseZone(world)
  stop.abort()
  await ended
  const { passMs: idlePassMs, heartbeatUs } = idle
  return {
    nodes,
    idlePassMs,
    heartbeatUs,
    changingPassMs: changing.passMs,
    zoneLossMs,
    placementsPerSecond,
    residentMB,
  }
}

async function settleFleet({ store, names, clock }: World): Promise<void> {
  for (const [i, name] of names.entries()) {
    const labels = { 'topology.kubernetes.io/zone': `zone-${i % zones}` }
    await store.create('nodes', aNode({ name, labels }))
    await store.create('leases', aLease({ name, renewTime: rfc3339Micro(clock.wallMs()) }))
    for (let pod = 0; pod < podsPerNode; pod++) {
      const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } as const
      await store.create('pods', aPod({ name: `${name}-${pod}`, nodeName: name, phase: 'Running', status }))
    }
  }
}

/** The mean of many monitor passes, with the heartbeats that come between them, timed apart. */
async function passes(world: World, change: (turn: number) => Promise<void>) {
  let [passMs, heartbeatMs, beats] = [0, 0, 0]
  for (let turn = 0; turn < passCount; turn++) {
    const half = world.names.filter((_, i) => i % 2 === turn % 2)
    heartbeatMs += await timed(() => heartbeats(world, half))
    beats += half.length
    passMs += await timed(async () => {
      await change(turn)
      await world.clock.advance(periodMs)
    })
  }
  return { passMs: passMs / passCount, heartbeatUs: (heartbeatMs * 1000) / beats }
}

async function heartbeats({ store, clock }: World, names: readonly string[]): Promise<void> {
  const renewTime = rfc3339Micro(clock.wallMs())
  for (const name of names) {
    const lease = await store.get('leases', { namespace: 'kube-node-lease', name })
    if (lease !== undefined) await store.update('leases', { ...lease, spec: { ...lease.spec, renewTime } })
  }
  await clock.settle()
}

/** One node of a hundred reports memory pressure, or its end: a status and a taint each. */
async function pressHundredth({ store, clock, names }: World, status: 'True' | 'False'): Promise<void> {
  const lastHeartbeatTime = rfc3339(clock.wallMs())
  for (const name of names.filter((_, i) => i % 100 === 0)) {
    const node = await store.get('nodes', { namespace: '', name })
    if (node === undefined) continue
    const conditions = (node.status?.conditions ?? []).map((condition) =>
      condition.type === 'MemoryPressure' ? { ...condition, status } : { ...condition, lastHeartbeatTime },
    )
    await store.updateStatus('nodes', { ...node, status: { ...node.status, conditions } })
  }
}

async function placeMany({ store, clock }: World): Promise<number> {
  for (let i = 0; i < placements; i++) {
    await store.create('pods', aPod({ name: `new-${i}`, requests: { cpu: '10m', memory: '1Mi' } }))
  }
  const waiting = async () => (await store.list('pods')).items.filter(({ spec }) => !spec.nodeName).length
  const tookMs = await timed(async () => {
    while ((await waiting()) > 0) await clock.settle()
  })
  return placements / (tookMs / 1000)
}

/** From the pass that finds a tenth of the fleet silent until all of it is written: nodes, their pods, the events. */
async function loseZone(world: World): Promise<number> {
  const { store, clock, names } = world
  const others = names.filter((_, i) => i % zones !== 0)
  let longestMs = 0
  for (let passedMs = 0; passedMs < 70_000; passedMs += periodMs) {
    await heartbeats(world, others)
    longestMs = Math.max(longestMs, await timed(() => clock.advance(periodMs)))
  }
  const { items } = await store.list('nodes')
  const found = items.filter((node) => node.status?.conditions?.some(({ status }) => status === 'Unknown'))
  if (found.length !== names.length - others.length) throw new Error(`${found.length} lost nodes were found`)
  return longestMs
}

/** Processor time, so that what else the machine does makes no difference. */
async function timed(act: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

function residentNow(): number {
  globalThis.gc?.()
  return process.memoryUsage().rss / 1_000_000
}

function table(rows: readonly Figures[]): string {
  const lines = rows.map((row) => [
    row.nodes.toLocaleString('en'),
    `${row.idlePassMs.toFixed(1)} ms`,
    `${row.changingPassMs.toFixed(1)} ms`,
    `${row.heartbeatUs.toFixed(0)} µs`,
    `${Math.round(row.zoneLossMs)} ms`,
    Math.round(row.placementsPerSecond).toLocaleString('en'),
    `${Math.round(row.residentMB)} MB`,
  ])
  const heads = [
    'nodes',
    'idle pass',
    'pass with 1 % changing',
    'a heartbeat',
    'loss of a zone',
    'placements a second',
    'resident',
  ]
  return [heads, heads.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
