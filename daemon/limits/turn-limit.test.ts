import { test } from 'tap'
import { eachInTurns, yieldTurn } from './turn-limit.ts'

/** Work that takes so long, and waits for nothing. */
function busy(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

test('work that waits for nothing leaves turns to others', async (t) => {
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const work = async () => {
    for (let step = 0; step < 10; step++) {
      await yieldTurn()
      busy(30)
    }
  }
  await Promise.all([work(), work()])
  isOver = true
  t.ok(turns >= 10, `${turns} turns`)
})

test('each of many items is handled once and in order, with turns of others between them', async (t) => {
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const items = Array.from({ length: 2000 }, (_, index) => index)
  const handled: number[] = []
  await eachInTurns(items, (item) => {
    if (item % 200 === 0) busy(15)
    handled.push(item)
  })
  isOver = true
  t.same(handled, items)
  t.ok(turns >= 3, `${turns} turns`)
})
