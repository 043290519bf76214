/** Checks that no input but a body holds the event loop for too long. `--help` prints the usage. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../broker-controller/store/sqlite/sqlite-store.ts'
import { budgetLog as log } from '../broker-controller/testing/budget/budgeted-api.ts'
import { inputCases } from '../broker-controller/testing/budget/input-cases.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import { invalidValue } from '../daemon/process/command-line.ts'
import { budgetMs, turnCost } from '../daemon/testing/turn-budget.ts'
import { benchmarkOptions, rejectOptions } from './options/benchmark-options.ts'

const runs = 3
const row = {
  name: 'node dist/bench/budget-inputs.js',
  text: `Does what bench/budget.ts does for what is not the body of an object: messages of nodes on every topic, parts of checkpoints, options of
lists of 3,000 objects, JSON patches and certificate requests. Prints the longest time that each held the event loop: CPU time, the least of
${runs} runs. Exits with 1 if one took more than ${budgetMs} ms.`,
  options: { only: { value: 'TEXT', help: 'run the cases that have this in their names', defaultText: 'all' } },
} as const
const { only = '' } = benchmarkOptions(row)
const folder = await mkdtemp(join(tmpdir(), 'bramble-budget-'))
const slow: string[] = []
let [stores, cases] = [0, 0]
const openStore = async () => {
  const { store } = await openSqliteStore({ path: join(folder, `store-${++stores}.db`), clock, log })
  return store
}

try {
  for await (const one of inputCases({ openStore, clock })) {
    if (!one.what.includes(only)) continue
    cases += 1
    const { ms, result } = await turnCost(one, { enoughMs: budgetMs / 2, runs })
    if (ms > budgetMs) slow.push(one.what)
    const code = result === undefined ? '' : ` ${result}`
    console.log(`${ms.toFixed(0).padStart(6)} ms ${String(one.bytes).padStart(8)} B ${code.padStart(4)}  ${one.what}`)
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
if (cases === 0) rejectOptions(row, invalidValue('--only', only, 'use a part of the name of a case'))
console.log(slow.length === 0 ? `none above ${budgetMs} ms` : `above ${budgetMs} ms: ${slow.join(', ')}`)
process.exitCode = slow.length > 0 ? 1 : 0
