/** Runs simulated worlds. `--help` prints the usage. */
import { parseArgs } from 'node:util'
import { type SimulationResult, simulate } from './simulation.ts'

const usage = `npm run sim -- [--seed N | --seeds A..B | --minutes M] [--nodes N] [--fault-minutes M] [--story]

Runs a fleet in this process: the agents and the controller, over a simulated clock, network, disks and Docker. The seed decides
everything. Checks what must always hold, and after the faults that everything matches the manifests.

  --seed N           replays one seed, and prints its story
  --seeds A..B       runs these seeds
  --minutes M        runs new seeds for this long (default: 1)
  --nodes N          nodes of the fleet (default: 3)
  --fault-minutes M  for how long faults begin, in simulated minutes (default: 30)
  --story            prints the story of each seed, also of those that hold

Exits with 1 where something did not hold. The story of such a seed is printed.`

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    nodes: { type: 'string', default: '3' },
    'fault-minutes': { type: 'string', default: '30' },
    story: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

/** Printed as it comes: also the story of a world that does not end. */
const isPrinted = values.seed !== undefined || values.story

if (values.help) console.log(usage)
else process.exitCode = await run()

async function run(): Promise<number> {
  const failed: number[] = []
  const beganMs = performance.now()
  let simulatedMs = 0
  let count = 0
  for (const seed of seeds()) {
    const seedMs = performance.now()
    const result = await simulate({
      ...{ seed, nodes: Number(values.nodes), faultMinutes: Number(values['fault-minutes']) },
      ...(isPrinted && { shown: console.log }),
    })
    count += 1
    simulatedMs += result.simulatedMs
    if (result.violations.length > 0) failed.push(seed)
    print(result, performance.now() - seedMs)
  }
  const minutes = Math.round(simulatedMs / 60_000)
  console.log(`${count} seeds, ${minutes} simulated minutes in ${Math.round((performance.now() - beganMs) / 1000)} s`)
  if (failed.length > 0) console.log(`Failed: ${failed.join(' ')}`)
  return failed.length === 0 ? 0 : 1
}

function* seeds(): Generator<number> {
  if (values.seed !== undefined) return yield Number(values.seed)
  if (values.seeds !== undefined) {
    const [first = 0, last = first] = values.seeds.split('..').map(Number)
    for (let seed = first; seed <= last; seed++) yield seed
    return
  }
  const untilMs = performance.now() + Number(values.minutes ?? '1') * 60_000
  for (let seed = Date.now() % 1_000_000_000; performance.now() < untilMs; seed++) yield seed
}

function print({ seed, story, violations }: SimulationResult, ms: number): void {
  if (!isPrinted && violations.length > 0) console.log(story.join('\n'))
  const verdict = violations.length === 0 ? 'holds' : `FAILS: ${violations.join('; ')}`
  console.log(`seed ${seed} ${verdict} (${(ms / 1000).toFixed(1)} s)`)
}
