/** Checks that no request with a body holds the event loop for too long. `--help` prints the usage. */
import { mostValues } from '../broker-controller/apiserver/wire/body-limits.ts'
import { handmadeCases, schemaCases } from '../broker-controller/testing/budget/object-cases.ts'
import { invalidValue } from '../daemon/process/command-line.ts'
import { type BudgetCase, budgetMs, turnCost } from '../daemon/testing/turn-budget.ts'
import { benchmarkOptions, rejectOptions } from './options/benchmark-options.ts'

type Row = { readonly what: string; readonly bytes: number; readonly result: unknown; readonly ms: number }

const row = {
  name: 'node dist/bench/budget.js',
  text: `Sends the largest objects that the limits allow, for each list and map of each kind and those made by hand, with each verb, and prints
the slowest requests: the least CPU time of some runs, from the bytes of the body to the answer, with a store in memory. Exits with 1 if one
holds the event loop for more than ${budgetMs} ms. broker-controller/assembly/budget.test.ts runs the most important cases.`,
  options: {
    values: { value: 'N', help: 'values in a body', range: [1, 1_000_000], default: String(mostValues) },
    only: { value: 'TEXT', help: 'run the cases that have this in their names', defaultText: 'all' },
  },
} as const
const { values, only = '' } = benchmarkOptions(row)
const rows: Row[] = []
const options = { values, only }
for await (const one of schemaCases(options)) await measure(one)
for await (const one of handmadeCases(options)) await measure(one)
if (rows.length === 0) rejectOptions(row, invalidValue('--only', only, 'use a part of the name of a case'))
const slow = rows.filter(({ ms }) => ms > budgetMs)
console.log('The longest:')
for (const one of rows.toSorted((a, b) => b.ms - a.ms).slice(0, 30)) print(one)
console.log(`${rows.length} requests, ${slow.length} above ${budgetMs} ms`)
process.exitCode = slow.length > 0 ? 1 : 0

async function measure(one: BudgetCase): Promise<void> {
  const { ms, result } = await turnCost(one, { enoughMs: budgetMs / 2 })
  const request = { what: one.what, bytes: one.bytes, result, ms }
  rows.push(request)
  if (ms > budgetMs) print(request)
}

function print({ what, bytes, result, ms }: Row): void {
  console.log(`${ms.toFixed(0).padStart(6)} ms ${String(bytes).padStart(8)} B  ${result}  ${what}`)
}
