/** Runs simulated worlds by the options of the command line. */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { plantedNames } from './planted/plant.ts'
import { plantedFaults } from './planted/planted-faults.ts'
import { linesOf } from './seeds/program-lines.ts'
import type { SeedOrder, SeedReport } from './seeds/seed-orders.ts'
import { runInProcesses } from './seeds/seed-processes.ts'
import { shrunk, type WorldSize } from './shrink.ts'
import { simulate } from './simulation.ts'
import { type Coverage, coverageText, noCoverage, sumOfCoverage } from './story/coverage.ts'
import { isWorldKind, worldKinds, worldOf } from './worlds.ts'

const usage = `npm run sim -- [--seed N | --seeds A..B | --minutes M | --hours H] [--world KIND] [--nodes N] [--fault-minutes M]
  [--skip A,B] [--processes N] [--lines PATH] [--story | --shrink | --planted FAULT]

Runs a fleet in one process: the agents and the controller, over a simulated clock, network, disks and Docker. The seed decides
everything. Checks what must always hold, and after the faults that everything matches the manifests.

  --seed N           replays one seed, and prints its story
  --seeds A..B       runs these seeds
  --minutes M        runs new seeds for this long (default: 1)
  --hours H          the same, in hours
  --world KIND       ${worldKinds.join(' or ')} (default: by the seed)
  --nodes N          nodes of the fleet (default: 3)
  --fault-minutes M  for how long faults begin, in simulated minutes (default: 30)
  --skip A,B         leaves out these faults; their numbers are in the story
  --processes N      how many seeds run at a time (default: the number of processors)
  --lines PATH       at the end, the lines of the programs below this folder of which a part never ran, such as agent/pods/record
  --story            prints the story of each seed, also of those that hold
  --shrink           looks for a smaller world of the seed that fails in the same way: with fewer nodes, a shorter time and fewer
                     faults. Prints its options and its story
  --planted FAULT    changes the programs while they are loaded, and runs seeds until one finds this fault:
                     ${plantedNames.join(', ')}

Exits with 1 where something did not hold. The story of such a seed is printed. After several seeds a summary follows: how often each
fault began, and how often each rule was put to the test.`

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    hours: { type: 'string' },
    world: { type: 'string' },
    nodes: { type: 'string', default: '3' },
    'fault-minutes': { type: 'string', default: '30' },
    skip: { type: 'string', default: '' },
    processes: { type: 'string', default: String(availableParallelism()) },
    lines: { type: 'string' },
    story: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    planted: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

/** Printed as it comes: also the story of a world that does not end. */
const isPrinted = values.story || (values.seed !== undefined && !values.shrink)

const givenSize: WorldSize = {
  nodes: Number(values.nodes),
  faultMinutes: Number(values['fault-minutes']),
  skipped: values.skip.split(',').filter(Boolean).map(Number),
}

if (values.help) console.log(usage)
else if (values.world !== undefined && !isWorldKind(values.world)) {
  console.error(`--world must be ${worldKinds.join(' or ')}`)
  process.exitCode = 2
} else if (!/^[1-9]\d{0,2}$/.test(values.processes)) {
  // With none no seed would run, and nothing fail.
  console.error(`--processes must be a number from 1 to 999, not ${values.processes}`)
  process.exitCode = 2
} else process.exitCode = await run()

async function run(): Promise<number> {
  const beganMs = performance.now()
  const reports: Pick<SeedReport, 'seed' | 'violations' | 'simulatedMs'>[] = []
  let coverage: Coverage = noCoverage
  const ended = ({ story, coverage: one, ms, ...report }: SeedReport) => {
    reports.push(report)
    coverage = sumOfCoverage(coverage, one)
    print({ ...report, story, ms })
  }
  const hasFailed = () => reports.some(({ violations }) => violations.length > 0)
  const isHere = isPrinted || values.shrink || values.planted !== undefined
  const ran = isHere ? await runHere(ended, hasFailed) : await runInProcesses(orders(), { ...processSettings(), ended })
  if (reports.length > 1 && values.planted === undefined) console.log(coverageText(coverage).join('\n'))
  if (values.lines !== undefined && !isHere) console.log(linesOf(values.lines, ran).join('\n'))
  const minutes = Math.round(reports.reduce((sum, { simulatedMs }) => sum + simulatedMs, 0) / 60_000)
  const seconds = Math.round((performance.now() - beganMs) / 1000)
  console.log(`${reports.length} seeds, ${minutes} simulated minutes in ${seconds} s`)
  const failed = reports.filter(({ violations }) => violations.length > 0).map(({ seed }) => seed)
  if (failed.length > 0) console.log(`Failed: ${failed.sort((a, b) => a - b).join(' ')}`)
  return failed.length === 0 ? 0 : 1
}

/** One after the other in this process, until one fails where a fault is planted. */
async function runHere(ended: (report: SeedReport) => void, hasFailed: () => boolean): Promise<readonly []> {
  for (const { seed, world, size } of orders()) {
    const seedMs = performance.now()
    const used = values.shrink ? await smallest(seed) : size
    const result = await simulate({ seed, world, ...used, ...(isPrinted && { shown: console.log }) })
    ended({ ...result, ms: performance.now() - seedMs })
    if (values.planted !== undefined && hasFailed()) break
  }
  return []
}

function processSettings() {
  const { processes, lines } = values
  return { processes: Number(processes), options: lines === undefined ? [] : ['--lines', lines] }
}

function* orders(): Generator<SeedOrder> {
  for (const seed of seeds()) yield { seed, world: worldFor(seed), size: givenSize }
}

/** The smallest world of the seed that fails in the same way; of the given size if that holds. */
async function smallest(seed: number): Promise<WorldSize> {
  const found = (size: WorldSize) => console.log(`seed ${seed} fails with ${optionsOf(size)}`)
  return (
    (await shrunk({ run: (size) => simulate({ seed, world: worldFor(seed), ...size }), found }, givenSize)) ?? givenSize
  )
}

function worldFor(seed: number) {
  if (values.planted !== undefined) return plantedFaults[values.planted]?.world ?? worldOf(seed)
  return values.world !== undefined && isWorldKind(values.world) ? values.world : worldOf(seed)
}

function optionsOf({ nodes, faultMinutes, skipped }: WorldSize): string {
  const skip = skipped.length === 0 ? '' : ` --skip ${skipped.join()}`
  return `--nodes ${nodes} --fault-minutes ${faultMinutes}${skip}`
}

function* seeds(): Generator<number> {
  if (values.seed !== undefined) return yield Number(values.seed)
  if (values.seeds !== undefined) {
    const [first = 0, last = first] = values.seeds.split('..').map(Number)
    for (let seed = first; seed <= last; seed++) yield seed
    return
  }
  const minutes = values.hours === undefined ? Number(values.minutes ?? '1') : Number(values.hours) * 60
  const untilMs = performance.now() + minutes * 60_000
  for (let seed = Date.now() % 1_000_000_000; performance.now() < untilMs; seed++) yield seed
}

type Printed = Pick<SeedReport, 'seed' | 'story' | 'violations' | 'ms'>

function print({ seed, story, violations, ms }: Printed): void {
  if (!isPrinted && violations.length > 0 && values.planted === undefined) console.log(story.join('\n'))
  const verdict = violations.length === 0 ? 'holds' : `FAILS: ${violations.join('; ')}`
  console.log(`seed ${seed} ${verdict} (${(ms / 1000).toFixed(1)} s)`)
}
