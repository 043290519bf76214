/** Measures what an open page of the dashboard costs a controller. `--help` prints the usage. */
import { administrator } from '../../api/identity.ts'
import { aLease, aNode, aPod } from '../../api/testing/builders.ts'
import { openAuthorizer } from '../../broker-controller/apiserver/authorization/authorizer.ts'
import { memoryStore } from '../../broker-controller/store/memory-store.ts'
import { usageBoard } from '../../broker-controller/usage/usage-board.ts'
import { systemClock as clock, rfc3339Micro } from '../../daemon/clock.ts'
import { openLog } from '../../daemon/log.ts'
import { dashboardFleet } from '../../dashboard/server/dashboard-fleet.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const { nodes, pods, pages, seconds } = benchmarkOptions({
  name: 'node dist/bench/dashboard/open-page.js',
  text: `Measures what an open page of the dashboard costs a controller: a fleet in memory whose nodes renew leases and report usage, first without a
page, then with pages.`,
  options: {
    nodes: { value: 'N', help: 'number of nodes', range: [1, 100_000], default: '1000' },
    pods: { value: 'N', help: 'number of pods', range: [0, 1_000_000], default: '5000' },
    pages: { value: 'N', help: 'open pages', range: [1, 1_000], default: '1' },
    seconds: { value: 'S', help: 'length of each measurement', range: [1, 100_000], default: '60' },
  },
})

const log = openLog({ format: 'text', level: 'warn', write: (line) => void process.stderr.write(line) })
const store = memoryStore({ clock })
const access = await openAuthorizer({ store, clock, log })
const usage = usageBoard({ clock })
const fleet = dashboardFleet({ store, clock, log, usage, access, commonNameOf: () => undefined, alwaysSample: false })
const nameOf = (index: number) => `pi-${index}`

for (let i = 0; i < nodes; i++) {
  const plain = aNode({ name: nameOf(i), ready: 'True' })
  await store.create('nodes', {
    ...plain,
    status: { ...plain.status, capacity: { cpu: '4', memory: '4Gi', pods: '110' } },
  })
  await store.create('leases', leaseNow(nameOf(i)))
}
for (let i = 0; i < pods; i++) await store.create('pods', aPod({ name: `web-${i}`, nodeName: nameOf(i % nodes) }))

const stopping = new AbortController()
const asked = new Map<string, { everyMs: number; untilMs: number; atMs: number }>()
usage.onAsk(() => {
  for (const { node, seconds, everySeconds } of usage.takeAsks(100_000)) {
    const everyMs = everySeconds * 1000
    asked.set(node, {
      everyMs,
      untilMs: clock.monotonicMs() + seconds * 1000,
      atMs: clock.monotonicMs() + Math.random() * everyMs,
    })
  }
})
let reports = 0

/** Each node renews its lease every 10 s, and reports what was asked for. */
async function life(): Promise<void> {
  for (let turn = 0; !stopping.signal.aborted; turn++) {
    const now = clock.monotonicMs()
    for (let i = turn % 100; i < nodes; i += 100) {
      await store.update('leases', leaseNow(nameOf(i)))
    }
    for (const [node, one] of asked) {
      if (now > one.untilMs) asked.delete(node)
      else if (now >= one.atMs) {
        one.atMs += one.everyMs
        reports++
        usage.receive(node, reportOf(node))
      }
    }
    await clock.sleep(100)
  }
}

/** Without a version: the update replaces whatever is there. */
function leaseNow(name: string) {
  const { resourceVersion: _, ...metadata } = aLease({ name }).metadata
  return { ...aLease({ name, renewTime: rfc3339Micro(clock.wallMs()) }), metadata }
}

function reportOf(nodeName: string) {
  const time = '2026-01-01T00:00:00Z'
  const cpu = { time, usageNanoCores: Math.round((0.1 + Math.random() * 0.2) * 1e9) }
  const memory = { time, workingSetBytes: Math.round((1 + Math.random() * 0.05) * 2 ** 30) }
  const machine = { celsius: 48 + Math.random() * 3, load: 0.3, diskUsedBytes: 3e9, diskCapacityBytes: 3e10 }
  return { time, windowSeconds: 30, summary: { node: { nodeName, startTime: time, cpu, memory }, pods: [] }, machine }
}

type Page = { bytes: number; first: number; isComplete: boolean }

async function read(page: Page): Promise<void> {
  for await (const piece of fleet.stream(async () => administrator, stopping.signal)) {
    if (page.isComplete) page.bytes += piece.length
    else page.first += piece.length
    if (Buffer.from(piece).includes('"complete":true')) page.isComplete = true
  }
}

async function measured(what: string): Promise<number> {
  const before = process.cpuUsage()
  await clock.sleep(seconds * 1000)
  const { user, system } = process.cpuUsage(before)
  const percent = (user + system) / 10_000 / seconds
  console.log(`${what}: ${percent.toFixed(2)} % of a core`)
  return percent
}

void life()
const without = await measured('no page')
const opened = Array.from({ length: pages }, (): Page => ({ bytes: 0, first: 0, isComplete: false }))
const begun = clock.monotonicMs()
for (const page of opened) void read(page)
while (opened.some(({ isComplete }) => !isComplete)) await clock.sleep(10)
console.log(
  `first cards after ${Math.round(clock.monotonicMs() - begun)} ms, ${Math.round((opened[0]?.first ?? 0) / 1000)} kB`,
)
await clock.sleep(seconds * 1000) // the first reports of all nodes, which are all sent
for (const page of opened) page.bytes = 0
const reported = reports
const open = await measured(`${pages} open`)
const rate = (opened[0]?.bytes ?? 0) / seconds
console.log(
  `open pages: ${(open - without).toFixed(2)} % of a core more; each receives ${(rate / 1000).toFixed(2)} kB/s`,
)
console.log(`nodes report ${((reports - reported) / seconds).toFixed(1)} times per second in all`)
process.exit(0)
