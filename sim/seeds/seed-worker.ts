/** A process that runs the seeds that its parent sends, one after the other, and at last reports which lines ran: see `seed-processes.ts`. */
import { Session } from 'node:inspector'
import { parseArgs } from 'node:util'
import type { ScriptCoverage } from '../story/lines-run.ts'
import type { FromWorker, SeedOrder, ToWorker } from './seed-orders.ts'

const { lines } = parseArgs({ options: { lines: { type: 'string' } }, strict: false }).values

// Before any of the programs is loaded.
const counters = lines === undefined ? undefined : startCounters()
const { simulate } = await import('../simulation.ts')

process.on('message', (message: ToWorker) => {
  if (message !== 'lines') void run(message.order)
  else answer({ lines: counters?.() ?? [] })
})
process.on('disconnect', () => process.exit())

async function run({ seed, world, size }: SeedOrder): Promise<void> {
  const beganMs = performance.now()
  const { story, violations, simulatedMs, coverage } = await simulate({ seed, world, ...size })
  const shown = violations.length === 0 ? [] : story
  answer({ report: { seed, violations, simulatedMs, coverage, story: shown, ms: performance.now() - beganMs } })
}

function answer(message: FromWorker): void {
  process.send?.(message)
}

/** Counts what runs from now on. Gives the counts of all scripts that are files. */
function startCounters(): () => readonly ScriptCoverage[] {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return () => {
    let found: readonly ScriptCoverage[] = []
    session.post('Profiler.takePreciseCoverage', (_error, { result = [] }) => {
      found = result.filter(({ url }) => url.startsWith('file:'))
    })
    return found
  }
}
