/** No controller of volumes holds the event loop for more than 20 ms. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { test } from 'tap'
import type { MeasuredTurn } from '../../testing/budget/volume-turns.ts'

const budgetMs = 20

test('claims that wait beside thousands of volumes, or are deleted beside thousands of pods, keep the event loop free', {
  timeout: 900_000,
}, async (t) => {
  const turns: MeasuredTurn[] = []
  const file = new URL('../../testing/budget/volume-turns.js', import.meta.url)
  const thread = new Worker(file, { workerData: budgetMs })
  thread.on('message', (turn: MeasuredTurn) => {
    t.comment(`${turn.what}: ${turn.ms.toFixed(1)} ms`)
    turns.push(turn)
  })
  await once(thread, 'exit')
  t.ok(turns.length >= 6, `${turns.length} cases`)
  t.same(
    turns.filter(({ ms }) => ms > budgetMs).map(({ what, ms }) => `${what}: ${ms.toFixed(0)} ms`),
    [],
  )
})
