/** Tries faults on machines that boot, with Bramble and with Docker Swarm. `--help` prints the usage. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { storyOf } from '../../daemon/log.ts'
import { seededRandom } from '../../daemon/testing/seeded-random.ts'
import { uptimeS } from '../../test/support/run-records.ts'
import { eventually } from '../../test/support/wait.ts'
import { type Benchmark, benchmarkOptions, rejectOptions } from '../options/benchmark-options.ts'
import { bramble } from './bramble.ts'
import { type Fault, faults } from './faults.ts'
import { type Machines, startMachines } from './machines.ts'
import type { Orchestrator, Workloads } from './orchestrator.ts'
import { allRun, type Outcome, outcomeOf } from './outcome.ts'
import { type Report, reportText } from './report.ts'
import { swarm } from './swarm.ts'

const row = {
  name: 'scripts/chaos.sh',
  text: `Boots a machine with the control plane and three workers, runs nine containers on them, and has one fault after the other happen: lost power, a cable
that is out, a killed dockerd, a full disk, a control plane without power. Does it with Bramble from its packages, then with Docker Swarm, and
prints a line for each round and the report at the end. A round takes one to four minutes. Needs root, /dev/fuse and 20 GB in /tmp.`,
  options: {
    times: { value: 'N', help: 'rounds of each fault', range: [1, 1_000], default: '100' },
    faults: { value: 'NAMES', help: `some of ${faults.map(({ name }) => name).join(', ')}`, default: 'all' },
    systems: { value: 'NAMES', help: 'some of bramble, swarm', default: 'bramble,swarm' },
    seed: { value: 'N', help: 'of the order of machines and of what disks lose', range: [1, 2 ** 31], default: '1' },
    out: { value: 'FILE', help: 'where the report is written, after each fault too', default: '' },
  },
} as const satisfies Benchmark
const values = benchmarkOptions(row)
const systems: { readonly [name: string]: Orchestrator } = { bramble, swarm }
const workerCount = 3
const workloads: Workloads = {
  replicas: 6,
  withData: Array.from({ length: workerCount }, (_, index) => `data-${index}`),
}
/** Then a round ends, whatever runs. */
const longestS = 180
/** The next one begins when all run again: pods that a full disk has evicted wait for five minutes after it. */
const readyWithinS = 600
/** All must run for so long: a fault may end containers late, and what is moved or ends late is seen. */
const steadyS = 15

const chosenSystems = values.systems.split(',').map((name) => systems[name] ?? unknown('systems', name))
const chosenFaults =
  values.faults === 'all'
    ? faults
    : values.faults.split(',').map((name) => faults.find((one) => one.name === name) ?? unknown('faults', name))
const rows: { fault: Fault; system: string; outcomes: Outcome[] }[] = []

for (const system of chosenSystems) await tryFaults(system)
console.log(`\n${reportText(report())}`)

async function tryFaults(system: Orchestrator): Promise<void> {
  const ends: (() => Promise<unknown>)[] = []
  const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'bramble-chaos-'))
    ending.teardown(() => rm(folder, { recursive: true, force: true }))
    const prepared = await system.preparation()
    const machines = await startMachines(ending, { folder, workers: workerCount, seed: values.seed, ...prepared })
    await system.start(ending, machines, workloads)
    const random = seededRandom(values.seed)
    for (const fault of chosenFaults) {
      const outcomes: Outcome[] = []
      rows.push({ fault, system: system.name, outcomes })
      for (let round = 1; round <= values.times; round++) {
        const name = `${system.name}, ${fault.name} ${round}`
        try {
          const outcome = await tryFault(fault, machines, random)
          outcomes.push(outcome)
          console.log(`${name}: ${JSON.stringify(outcome)}`)
        } catch (error) {
          process.exitCode = 1
          console.error(`${name} has no outcome: ${storyOf(error)}`)
        }
      }
      if (values.out !== '') await writeFile(values.out, reportText(report()))
    }
  } finally {
    for (const end of ends.reverse()) await end().catch((error: unknown) => console.error(error))
  }
}

async function tryFault(fault: Fault, machines: Machines, random: () => number): Promise<Outcome> {
  const running = async (atS: number) => allRun({ ...workloads, runs: await machines.runs() }, atS)
  await eventually('all containers run before the fault', async () => running(await uptimeS()), {
    withinMs: readyWithinS * 1000,
  })
  await machines.forgetEndedRuns()
  const [lostBefore, startS] = [await machines.lostRecords(), await uptimeS()]
  const victim = fault.at === 'hub' ? machines.hub : machines.workers[Math.floor(random() * machines.workers.length)]
  if (victim === undefined) throw new Error('There is no worker')
  await fault.happen(victim, machines)
  let steadySinceS = await uptimeS()
  await eventually(
    'all containers run again',
    async () => {
      const nowS = await uptimeS()
      if (!(await running(nowS))) steadySinceS = nowS
      return nowS - steadySinceS > steadyS
    },
    { withinMs: longestS * 1000 },
  ).catch(() => undefined)
  return outcomeOf({
    ...workloads,
    ...{ victim: victim.name, startS, endS: await uptimeS() },
    runs: await machines.runs(),
    lostRecords: (await machines.lostRecords()) - lostBefore,
  })
}

function report(): Report {
  const [model = 'an unknown processor'] = cpus().map((cpu) => cpu.model)
  const { times, seed } = values
  return {
    facts: [
      `${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores (${model}), Linux ${release()}, load ${(loadavg()[0] ?? 0).toFixed(1)} at the end`,
      `\`scripts/chaos.sh --times ${times} --faults ${values.faults} --systems ${values.systems} --seed ${seed}\``,
    ],
    rows,
  }
}

function unknown(option: string, name: string): never {
  return rejectOptions(row, `Invalid value "${name}" for --${option}`)
}
