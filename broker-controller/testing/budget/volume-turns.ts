/**
 * Measures the longest turn of each case of volumes, in a thread of its own: in that of a test the tool of the tests follows each promise, and
 * collecting what it keeps of them would be the longest turn. `workerData`: the milliseconds that are enough.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { turnCost } from '../../../daemon/testing/turn-budget.ts'
import { volumeCases } from './volume-cases.ts'

export type MeasuredTurn = { readonly what: string; readonly ms: number }

const log = quietLog({
  fail(message) {
    throw new Error(message)
  },
})
for (const one of volumeCases({ log, pods: 3_000 })) {
  const { ms } = await turnCost(one, { enoughMs: Number(workerData) })
  await one.end()
  parentPort?.postMessage({ what: one.what, ms } satisfies MeasuredTurn)
}
