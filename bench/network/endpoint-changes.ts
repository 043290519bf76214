/** Measures how long after its change by the API an endpoint is in the rules of a node. `--help` prints the usage. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { agentLauncher } from '../../test/support/fleet.ts'
import { commandOrThrow, inSpace } from '../../test/support/machine-commands.ts'
import type { Program } from '../../test/support/program.ts'
import { eventually } from '../../test/support/wait.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'
import { type ServicesMachine, servicesMachine } from './many-services.ts'

const row = {
  name: 'node dist/bench/network/endpoint-changes.js',
  text: `Starts a controller, and an agent in a network namespace with a dockerd, and creates Services of three endpoints each. Changes the address
of one endpoint of another Service each time, slowly and then quickly, and prints the time from the API's answer until the kernel has the
address (nft monitor), and the CPU time of the agent and its nft for each change, less that of an agent at rest. Needs root, the parts
of the tests and bundles (npm run build).`,
  options: {
    services: { value: 'N', help: 'Services', range: [1, 10_000], default: '1000' },
    calm: { value: 'N', help: 'changes at rest, 6 s apart', range: [1, 1_000], default: '10' },
    churn: { value: 'N', help: 'changes that follow each other', range: [1, 10_000], default: '200' },
    every: { value: 'MS', help: 'from one of these to the next', range: [1, 60_000], default: '50' },
    rest: { value: 'S', help: 'how long the agent at rest is measured', range: [1, 3_600], default: '20' },
    launcher: {
      value: 'FILE',
      help: 'bramble-agent of another version',
      default: agentLauncher,
      defaultText: 'that of this tree',
    },
  },
} as const

/** After this long without a change the controller publishes the next one after its shortest wait (publish-pace.ts). */
const calmMs = 6_000

const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

async function main(): Promise<number> {
  const { services, calm, churn, every, rest, launcher } = benchmarkOptions(row)
  try {
    const machine = await servicesMachine(ending, launcher)
    const agent = machine.startAgent()
    await machine.controller.nodesReady('pi-1')
    await machine.createServices(services)
    await delay(calmMs)
    const kernel = watchedRules(machine)
    const cpu = await cpuTimer(agent)
    const [load = 0] = loadavg()
    console.log(`${cpus().length} cores, load ${load.toFixed(1)}, ${services} Services\n`)
    const before = await cpu.read()
    await delay(rest * 1000)
    const atRest = ((await cpu.read()) - before) / (rest * 1000)
    const measured = { machine, kernel, cpu, atRest, services }
    const rows = [
      await measure(measured, { name: `one every ${calmMs / 1000} s`, changes: calm, everyMs: calmMs, range: 1 }),
      await measure(measured, { name: `one every ${every} ms`, changes: churn, everyMs: every, range: 100 }),
    ]
    console.log(
      '| changes | number | median | 9 of 10 | longest | CPU of agent and nft for each |\n|---|---|---|---|---|---|',
    )
    console.log(rows.join('\n'))
    return 0
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

type Measured = {
  readonly machine: ServicesMachine
  readonly kernel: ReadonlyMap<string, number>
  readonly cpu: CpuTimer
  /** Milliseconds of CPU time for each millisecond. */
  readonly atRest: number
  readonly services: number
}
type Pattern = { readonly name: string; readonly changes: number; readonly everyMs: number; readonly range: number }

async function measure({ machine, kernel, cpu, atRest, services }: Measured, pattern: Pattern): Promise<string> {
  const { name, changes, everyMs, range } = pattern
  const answered = new Map<string, number>()
  const [beganMs, before] = [performance.now(), await cpu.read()]
  for (let change = 0; change < changes; change++) {
    await delay(Math.max(0, beganMs + change * everyMs - performance.now()))
    // 37 and 1,000 have no common divisor: each Service has its turn.
    const round = Math.floor(change / services)
    answered.set(await machine.changeEndpoint((change * 37) % services, range + round), performance.now())
  }
  const lastMs = performance.now()
  await eventually('rules of the last changes', () => [...answered.keys()].every((address) => kernel.has(address)))
  await delay(Math.max(0, calmMs - (performance.now() - lastMs)))
  const used = (await cpu.read()) - before - atRest * (performance.now() - beganMs)
  const times = [...answered]
    .map(([address, atMs]) => (kernel.get(address) ?? Number.NaN) - atMs)
    .sort((one, other) => one - other)
  const at = (part: number) =>
    `${(times[Math.min(changes - 1, Math.floor(changes * part))] ?? Number.NaN).toFixed(0)} ms`
  return `| ${[name, changes, at(0.5), at(0.9), at(1), `${(used / changes).toFixed(0)} ms`].join(' | ')} |`
}

/** When each address came into the table, in milliseconds of performance.now(). Events of netlink: nothing is asked for. */
function watchedRules({ space }: ServicesMachine): ReadonlyMap<string, number> {
  const seen = new Map<string, number>()
  const [file = '', ...args] = inSpace(space, 'nft', 'monitor')
  const child: ChildProcess = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  ending.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  if (child.stdout === null) throw new Error('nft monitor has no output')
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('add ')) return
    for (const address of line.match(/\b10\.\d+\.\d+\.\d+\b/g) ?? []) {
      if (!seen.has(address)) seen.set(address, performance.now())
    }
  })
  return seen
}

type CpuTimer = {
  /** CPU time of the agent and the ended programs that it started, milliseconds. */
  read(): Promise<number>
}

async function cpuTimer({ pid }: Program): Promise<CpuTimer> {
  const tickMs = 1000 / Number(await commandOrThrow('getconf', ['CLK_TCK']))
  return {
    async read() {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
      // After the name, which may have spaces: utime, stime, cutime and cstime are fields 14 to 17 (proc_pid_stat(5)).
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return fields.slice(11, 15).reduce((sum, field) => sum + Number(field) * tickMs, 0)
    },
  }
}

process.exitCode = await main()
