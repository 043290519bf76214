/** Runs seeds in several processes at a time. The same seed gives the same story in each. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { noCoverage } from '../story/coverage.ts'
import type { ScriptCoverage } from '../story/lines-run.ts'
import type { FromWorker, SeedOrder, SeedReport, ToWorker } from './seed-orders.ts'

export type SeedProcessNeeds = {
  readonly processes: number
  /** Called with each report as it comes. */
  readonly ended: (report: SeedReport) => void
  /** Arguments for `main.ts`, such as those that count lines. */
  readonly options: readonly string[]
}

/** Gives what ran in each process, where its options count that. A seed that ends its process has that as its violation. */
export async function runInProcesses(
  orders: Iterator<SeedOrder>,
  { processes, ended, options }: SeedProcessNeeds,
): Promise<readonly (readonly ScriptCoverage[])[]> {
  const start = () =>
    fork(fileURLToPath(new URL('../main.js', import.meta.url)), ['--worker', ...options], { serialization: 'advanced' })
  const work = async (): Promise<readonly ScriptCoverage[]> => {
    let child: ChildProcess | undefined
    for (let next = orders.next(); !next.done; next = orders.next()) {
      child ??= start()
      const answer = await answerOf(child, { order: next.value })
      if (typeof answer === 'string') child = undefined
      ended(typeof answer !== 'string' && 'report' in answer ? answer.report : brokenReport(next.value.seed, answer))
    }
    if (child === undefined) return []
    const answer = await answerOf(child, 'lines')
    child.kill()
    return typeof answer !== 'string' && 'lines' in answer ? answer.lines : []
  }
  return await Promise.all(Array.from({ length: processes }, work))
}

/** The next message of the process; how it ended, where it does. */
function answerOf(child: ChildProcess, message: ToWorker): Promise<FromWorker | string> {
  return new Promise((resolve) => {
    const onMessage = (answer: unknown) => settle(answer as FromWorker)
    const onExit = (status: number | null, signal: string | null) => settle(`${signal ?? `status ${status}`}`)
    const settle = (answer: FromWorker | string) => {
      child.off('message', onMessage).off('exit', onExit)
      resolve(answer)
    }
    child.on('message', onMessage).on('exit', onExit)
    child.send(message, (error) => {
      if (error) settle(error.message)
    })
  })
}

function brokenReport(seed: number, answer: unknown): SeedReport {
  const violations = [`the process of the simulator has ended with ${String(answer)}`]
  return { seed, story: [], violations, simulatedMs: 0, coverage: noCoverage, ms: 0 }
}
