import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import type { Steps } from '../watchdog/steps.ts'
import { eachInTurns, finishedInTurns, measureTurnsBy, yieldTurn } from './turn-limit.ts'

/** Work that takes this long, and waits for nothing. */
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

test('work that comes into a turn shares its limit with the work that is there', async (t) => {
  // The turn of the test before has ended.
  await delay(20)
  let inTurn = 0
  let most = 0
  let isOver = false
  const count = () => {
    most = Math.max(most, inTurn)
    inTurn = 0
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const work = async (steps: number) => {
    for (let step = 0; step < steps; step++) {
      await yieldTurn()
      busy(6)
      inTurn++
    }
  }
  const inNextTurn = () => new Promise<void>((resolve) => setImmediate(() => resolve(work(6))))
  // One comes before what the first look at the clock in this turn leaves for the next one, the other after it.
  await Promise.all([inNextTurn(), work(1), inNextTurn()])
  isOver = true
  count()
  t.ok(most <= 2, `${most} steps of 6 ms in one turn`)
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

test('the steps of a decision leave turns to others, and their result is the same', async (t) => {
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  function* decision(): Steps<number> {
    for (let step = 0; step < 5; step++) {
      busy(15)
      yield
    }
    return 7
  }
  t.equal(await finishedInTurns(decision()), 7)
  isOver = true
  t.ok(turns >= 4, `${turns} turns`)
})

test('a clock that stands still divides no work, until the turns are measured as before', async (t) => {
  const inOneTurn = async () => {
    let turns = 0
    const count = setImmediate(() => turns++)
    await yieldTurn()
    busy(20)
    await yieldTurn()
    clearImmediate(count)
    return turns === 0
  }
  await delay(20)
  const stop = measureTurnsBy(() => 0)
  t.ok(await inOneTurn())
  stop()
  await delay(20)
  t.notOk(await inOneTurn())
})
