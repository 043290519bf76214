/** Measures the name server of a node over UDP. `--help` prints the usage. */
import { type ChildProcess, fork } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { openNameSockets } from '../agent/adapters/network/name-sockets.ts'
import { upstreamSockets } from '../agent/adapters/network/upstream-sockets.ts'
import { answerCache } from '../agent/network/names/answer-cache.ts'
import { dnsAnswerer } from '../agent/network/names/answerer.ts'
import { dnsTypes } from '../agent/network/names/dns-query.ts'
import { dnsForwarder } from '../agent/network/names/forwarder.ts'
import { sourceLimit } from '../agent/network/names/source-limit.ts'
import { clusterZone, type Zone } from '../agent/network/names/zone.ts'
import { dnsQuestion } from '../agent/network/testing/dns-client.ts'
import type { ServiceState } from '../api/network/service-endpoints.ts'
import { systemClock } from '../daemon/clock.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

/** `open`: so many questions are open at a time; 0: all that the client can send, without waiting. */
type Job = { readonly port: number; readonly names: number; readonly open: number; readonly ms: number }
type Done = { readonly answers: number; readonly sent: number; readonly times: readonly number[] }

const { services: count } = benchmarkOptions({
  name: 'node dist/bench/names.js',
  text: `Measures the name server of a node over UDP with Services of three endpoints. The client is a process of its own. Prints answers a
second, times of single questions, the CPU time of the server for an answer, what a change of a Service and the first question for the name of an
address cost, and how a flood from one pod delays the event loop.`,
  options: { services: { value: 'N', help: 'Services', range: [1, 60_000], default: '1000' } },
})
const clusterDomain = 'cluster.local'
const nameOf = (index: number) => `service-${index}.shop.svc.${clusterDomain}`

if (process.send === undefined) await serve()
else process.on('message', (job: Job) => void ask(job).then((done) => process.send?.(done)))

async function serve(): Promise<void> {
  const network = {
    epoch: 'e',
    version: 1,
    clusterCIDR: '10.244.0.0/16',
    serviceCIDR: '10.96.0.0/12',
    clusterDomain,
    nodes: [],
  }
  let services: ReadonlyMap<string, ServiceState> = new Map(servicesOf(count).map((one) => [`shop/${one.name}`, one]))
  const make = () => clusterZone({ network, services, isComplete: true, serial: 1 })
  let zone: Zone = make()
  const forwarder = dnsForwarder({
    sockets: upstreamSockets(),
    servers: async () => [],
    cache: answerCache(),
    randomId: () => 1,
    clock: systemClock,
  })
  const shared = { zone: () => zone, forwarder, isClient: () => true, random: Math.random }
  const unlimited = sourceLimit(systemClock, { perSecond: 1e9, atOnce: 1e9 })
  const open = (limit: typeof unlimited) =>
    openNameSockets({ address: '127.0.0.1', port: 0 }, dnsAnswerer({ ...shared, limit }))
  const [free, limited] = [await open(unlimited), await open(sourceLimit(systemClock))]
  const client = fork(fileURLToPath(import.meta.url))

  await run(client, { port: free.port, names: count, open: 32, ms: 1_000 })
  const cpu = process.cpuUsage()
  const busy = await run(client, { port: free.port, names: count, open: 32, ms: 5_000 })
  const { user, system } = process.cpuUsage(cpu)
  console.log(
    `32 open questions      ${perSecond(busy, 5_000)} answers/s, ${((user + system) / busy.answers).toFixed(1)} us CPU each`,
  )
  const single = await run(client, { port: free.port, names: count, open: 1, ms: 3_000 })
  console.log(
    `one open question      ${perSecond(single, 3_000)} answers/s, p50 ${share(single, 0.5)} us, p99 ${share(single, 0.99)} us`,
  )

  const changing = performance.now()
  services = new Map(services)
  zone = make()
  zone.answer(nameOf(1), dnsTypes.A)
  console.log(`a change of Services   ${(performance.now() - changing).toFixed(2)} ms to the first answer`)
  const indexing = performance.now()
  zone.answer('1.0.96.10.in-addr.arpa', dnsTypes.PTR)
  console.log(`the index of addresses ${(performance.now() - indexing).toFixed(2)} ms at the first question for one`)

  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const flooded = process.cpuUsage()
  const flood = await run(client, { port: limited.port, names: count, open: 0, ms: 5_000 })
  const spent = process.cpuUsage(flooded)
  delay.disable()
  const lateMs = (delay.percentile(99) / 1e6).toFixed(1)
  const shareOfCore = (((spent.user + spent.system) / 5_000_000) * 100).toFixed(0)
  console.log(
    `a flood                ${Math.round(flood.sent / 5)} questions/s sent, ${perSecond(flood, 5_000)} answered, ${shareOfCore} % of a core, event loop p99 ${lateMs} ms late`,
  )
  client.kill()
  await Promise.all([free.close(), limited.close()])
}

async function run(client: ChildProcess, job: Job): Promise<Done> {
  client.send(job)
  const [done] = (await once(client, 'message')) as [Done]
  return done
}

function perSecond({ answers }: Done, ms: number): number {
  return Math.round((answers * 1_000) / ms)
}

function share({ times }: Done, part: number): string {
  const sorted = [...times].sort((a, b) => a - b)
  return ((sorted[Math.floor(sorted.length * part)] ?? 0) * 1_000).toFixed(0)
}

function servicesOf(many: number): readonly ServiceState[] {
  return Array.from({ length: many }, (_, index) => {
    const ip = (last: number) => `10.244.${index % 250}.${last}`
    return {
      namespace: 'shop',
      name: `service-${index}`,
      type: 'ClusterIP',
      clusterIPs: [`10.96.${Math.floor(index / 250)}.${index % 250}`],
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      internalTrafficPolicy: 'Cluster',
      externalTrafficPolicy: 'Cluster',
      endpoints: [
        {
          ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
          addresses: [1, 2, 3].map((last) => ({
            ip: ip(last),
            hostname: `h-${last}`,
            ready: true,
            serving: true,
            terminating: false,
          })),
        },
      ],
    }
  })
}

/** Asks for a quarter of names that do not exist, as the search domains of pods make clients do. */
async function ask({ port, names, open, ms }: Job): Promise<Done> {
  const questions = Array.from({ length: Math.min(names, 1_000) }, (_, index) =>
    dnsQuestion(index % 4 === 0 ? `x-${index}.example.shop.svc.${clusterDomain}` : nameOf(index), 'A', { id: index }),
  )
  const socket = createSocket('udp4')
  const begun = new Map<number, number>()
  const times: number[] = []
  let [answers, sent, next, isOver] = [0, 0, 0, false]
  const send = () => {
    const question = questions[next++ % questions.length]
    if (question === undefined) return
    if (open === 1) begun.set(question.readUInt16BE(0), performance.now())
    sent += 1
    socket.send(question, port, '127.0.0.1')
  }
  socket.on('message', (answer) => {
    answers += 1
    const start = begun.get(answer.readUInt16BE(0))
    if (start !== undefined) times.push(performance.now() - start)
    if (open > 0 && !isOver) send()
  })
  for (let index = 0; index < open; index++) send()
  const pump = () => {
    if (isOver) return
    for (let index = 0; index < 100; index++) send()
    setImmediate(pump)
  }
  if (open === 0) pump()
  await new Promise((resolve) => setTimeout(resolve, ms))
  isOver = true
  await new Promise<void>((resolve) => void socket.close(resolve))
  return { answers, sent, times }
}
