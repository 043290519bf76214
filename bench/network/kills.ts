/** Measures whether connections by a Service fail while agents are killed and started again under load. `--help` prints the usage. */
import { cpus, loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { inSpace } from '../../test/support/machine-commands.ts'
import { podManifest } from '../../test/support/manifests.ts'
import { image } from '../../test/support/pods.ts'
import type { Program } from '../../test/support/program.ts'
import { type RoutedMachine, routedMachines, sandboxPid } from '../../test/support/routed-machines.ts'
import { eventually } from '../../test/support/wait.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'
import { startLoad, startServer } from './tcp-load.ts'

const row = {
  name: 'node dist/bench/network/kills.js',
  text: `Starts a controller and two machines, each a network namespace with a dockerd and an agent, and a Service with a pod on each. A client
opens connections at a fixed rate, each with one request, one answer and its close: first from a machine by the ClusterIP, then from
another host by a NodePort of that machine. Meanwhile the agents of both machines are killed in turn (SIGKILL) and started again. Prints
a table. Exits with 1 if a connection failed. Needs root, the parts of the tests and bundles (npm run build).`,
  options: {
    rate: { value: 'N', help: 'connections a second', range: [1, 100_000], default: '1000' },
    seconds: {
      value: 'S',
      help: 'how long each client goes on, and until the rules are in place again',
      range: [1, 3_600],
      default: '20',
    },
    kills: { value: 'N', help: 'kills for each client', range: [0, 100], default: '2' },
  },
} as const

const [port, nodePort] = [8080, 30_080]
const labels = { app: 'web' }

const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

type Running = { readonly machine: RoutedMachine; agent: Program }
type Client = { readonly name: string; readonly space: string; readonly address: string; readonly port: number }
type Arguments = { readonly rate: number; readonly seconds: number; readonly kills: number }

async function main(): Promise<number> {
  const values = benchmarkOptions(row)
  try {
    return await measure(values)
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

async function measure(values: Arguments): Promise<number> {
  const { controller, first, second, stranger } = await routedMachines(ending)
  const running: Running[] = []
  for (const machine of [first, second]) running.push({ machine, agent: await machine.startAgent() })
  await controller.nodesReady(first.name, second.name)
  const apply = (text: string) => controller.kubectlWith(text, 'apply', '-f', '-')
  for (const machine of [first, second]) {
    const spec = { nodeName: machine.name, terminationGracePeriodSeconds: 0 }
    await apply(podManifest({ name: machine.name, image, labels, spec }))
    const pid = await eventually(`a pod on ${machine.name}`, () => sandboxPid(machine.docker, machine.name))
    await startServer(ending, ['nsenter', `--net=/proc/${pid}/ns/net`], port, machine.name)
  }
  await apply(JSON.stringify(service))
  const clusterIP = await controller.kubectl('get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}')
  const [load = 0] = loadavg()
  console.log(`${cpus().length} cores, load ${load.toFixed(1)}, ${values.rate} connections a second asked for\n`)
  const clients: readonly Client[] = [
    { name: 'a machine, by the ClusterIP', space: first.space, address: clusterIP, port: 80 },
    { name: 'another host, by a NodePort', space: stranger.space, address: first.address, port: nodePort },
  ]
  const rows: string[] = []
  let failed = 0
  for (const client of clients) {
    await reachesBoth(client)
    const result = await measureClient(client, running, values)
    rows.push(result.row)
    failed += result.failed
  }
  console.log(
    '| client | connections | a second | failed | median | slowest 1 % | longest | agents killed | away for |',
  )
  console.log('|---|---|---|---|---|---|---|---|---|')
  console.log(rows.join('\n'))
  return failed > 0 ? 1 : 0
}

/** Until the rules of the machine that the client meets lead to the pods of both. */
async function reachesBoth({ space, ...asked }: Client): Promise<void> {
  await eventually('answers of both pods', async () => {
    const trial = await startLoad(ending, inSpace(space), { ...asked, rate: 100 })
    await delay(500)
    const { answers, failures } = await trial.stop()
    return Object.keys(answers).length === 2 && Object.keys(failures).length === 0
  })
}

async function measureClient(
  { name, space, ...asked }: Client,
  running: readonly Running[],
  { rate, seconds, kills }: Arguments,
): Promise<{ readonly row: string; readonly failed: number }> {
  const load = await startLoad(ending, inSpace(space), { ...asked, rate })
  const beganMs = performance.now()
  const away: string[] = []
  for (let kill = 0; kill < kills; kill++) {
    await delay(Math.max(0, beganMs + ((kill + 0.5) / (kills + 0.5)) * seconds * 1000 - performance.now()))
    const one = running[kill % running.length]
    if (one !== undefined) away.push(`${((await restarted(one)) / 1000).toFixed(1)} s`)
  }
  await delay(Math.max(0, beganMs + seconds * 1000 - performance.now()))
  const figures = await load.stop()
  const failed = Object.values(figures.failures).reduce((sum, count) => sum + count, 0)
  if (failed > 0) console.error(`${name}: ${JSON.stringify(figures.failures)}`)
  const cells = [
    ...[name, figures.made, Math.round(figures.made / figures.seconds), failed],
    ...[figures.medianMs, figures.slowest100thMs, figures.longestMs].map((ms) => `${ms.toFixed(1)} ms`),
    ...[away.length, away.join(', ')],
  ]
  return { row: `| ${cells.join(' | ')} |`, failed }
}

/** How long it took, in milliseconds, until the rules of the next agent are in the kernel. */
async function restarted(one: Running): Promise<number> {
  const killedMs = performance.now()
  one.agent.kill('SIGKILL')
  await one.agent.ended
  one.agent = await one.machine.startAgent()
  await one.agent.logged('Rules of the network applied')
  return performance.now() - killedMs
}

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web' },
  spec: { type: 'NodePort', selector: labels, ports: [{ port: 80, targetPort: port, nodePort }] },
}

process.exitCode = await main()
