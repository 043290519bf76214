/** Checks that no controller holds the event loop for too long beside very many pods. `--help` prints the usage. */
import { controllerCase, controllerCases } from '../../broker-controller/testing/budget/controller-cases.ts'
import { podCountCases } from '../../broker-controller/testing/budget/pod-count-cases.ts'
import { rolloutCases } from '../../broker-controller/testing/budget/rollout-cases.ts'
import { volumeCases } from '../../broker-controller/testing/budget/volume-cases.ts'
import { openLog } from '../../daemon/log.ts'
import { invalidValue } from '../../daemon/process/command-line.ts'
import { turnCost } from '../../daemon/testing/turn-budget.ts'
import { benchmarkOptions, rejectOptions } from '../options/benchmark-options.ts'

const budgetMs = 20
const row = {
  name: 'node --max-semi-space-size=4 dist/bench/budget/controllers.js',
  text: `Runs the cases of broker-controller/controllers/budget.test.ts and of volumes/budget.test.ts beside as many pods of one owner, Service
or node as it is given, and prints the longest turn of the event loop of each: CPU time, the least of some runs, with a store in memory. Exits
with 1 if one takes more than ${budgetMs} ms. The pauses of V8 that collect garbage are included: start it with the option of V8 that the launcher of the
controller gives.`,
  options: {
    pods: { value: 'N', help: 'pods of one owner, Service or node', range: [1_000, 1_000_000], default: '30000' },
    only: { value: 'TEXT', help: 'run the cases that have this in their names', defaultText: 'all' },
    runs: { value: 'N', help: 'runs of a case that is above the budget', range: [1, 100], default: '5' },
  },
} as const
const { pods, only = '', runs } = benchmarkOptions(row)
const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
const others = [...podCountCases, ...rolloutCases].map((one) => controllerCase(one, { log, pods }))
const slow: string[] = []
let cases = 0
for (const one of [...controllerCases({ log, pods }), ...others, ...volumeCases({ log, pods })]) {
  if (!one.what.includes(only)) continue
  cases += 1
  const { ms } = await turnCost(one, { enoughMs: budgetMs, runs })
  await one.end()
  if (ms > budgetMs) slow.push(one.what)
  console.log(`${ms.toFixed(1).padStart(6)} ms  ${one.what}`)
}
if (cases === 0) rejectOptions(row, invalidValue('--only', only, 'use a part of the name of a case'))
console.log(slow.length === 0 ? `none above ${budgetMs} ms` : `above ${budgetMs} ms: ${slow.join(', ')}`)
process.exitCode = slow.length > 0 ? 1 : 0
