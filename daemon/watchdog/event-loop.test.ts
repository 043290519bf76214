import { test } from 'tap'
import { type Block, beginOperation, watchEventLoop } from './event-loop.ts'

/** A clock and a timer moved by hand: work takes time, and the timer fires when the work is over. */
function aLoop() {
  const blocks: Block[] = []
  let now = 0
  let timer: { readonly dueMs: number; readonly callback: () => void } | undefined
  const stop = watchEventLoop({
    onBlock: (block) => void blocks.push(block),
    nowMs: () => now,
    setTimer: (callback, ms) => {
      timer = { dueMs: now + ms, callback }
    },
  })
  return {
    blocks,
    stop,
    isArmed: () => timer !== undefined,
    work(ms: number) {
      now += ms
    },
    rest(ms: number) {
      const until = now + ms
      while (timer !== undefined && timer.dueMs <= until) {
        const { callback, dueMs } = timer
        now = Math.max(now, dueMs)
        timer = undefined
        callback()
      }
      now = Math.max(now, until)
    },
  }
}

test('an operation that blocks the loop for longer than 250 ms is named', async (t) => {
  const loop = aLoop()
  t.teardown(loop.stop)
  beginOperation('request', 'PATCH /api/v1/nodes/pi')
  loop.work(400)
  loop.rest(0)
  t.same(loop.blocks, [{ kind: 'request', operation: 'PATCH /api/v1/nodes/pi', blockedMs: 300, operations: 1 }])
})

test('of several operations in a row the longest is named, with how many there were', async (t) => {
  const loop = aLoop()
  t.teardown(loop.stop)
  beginOperation('message', 'lease')
  loop.work(50)
  beginOperation('reconcile', 'scheduler')
  loop.work(500)
  beginOperation('message', 'status')
  loop.work(10)
  loop.rest(0)
  t.match(loop.blocks, [{ kind: 'reconcile', operation: 'scheduler', operations: 3 }])
  t.equal(loop.blocks.length, 1)
})

test('what is short, and what rests in between, is not counted', async (t) => {
  const loop = aLoop()
  t.teardown(loop.stop)
  for (let round = 0; round < 100; round++) {
    beginOperation('message', 'lease')
    loop.work(200)
    loop.rest(1_000)
  }
  t.same(loop.blocks, [])
})

test('unnamed work done while operations ran is counted as other', async (t) => {
  const loop = aLoop()
  t.teardown(loop.stop)
  beginOperation('message', 'lease')
  loop.rest(150)
  loop.work(400)
  loop.rest(0)
  t.match(loop.blocks, [{ kind: 'other', operation: '' }])
})

test('a process at rest has no timer, and one that is not watched notes nothing', async (t) => {
  const loop = aLoop()
  beginOperation('message', 'lease')
  t.ok(loop.isArmed())
  loop.rest(1_000)
  t.notOk(loop.isArmed())
  loop.stop()
  beginOperation('message', 'lease')
  t.notOk(loop.isArmed())
})

test('the real loop: a callback that computes for half a second is seen', async (t) => {
  const seen = new Promise<Block>((resolve) => {
    t.teardown(watchEventLoop({ onBlock: resolve }))
  })
  beginOperation('request', 'GET /busy')
  for (const until = performance.now() + 500; performance.now() < until; );
  const keptAlive = setInterval(() => undefined, 1_000)
  t.match(await seen, { kind: 'request', operation: 'GET /busy' })
  clearInterval(keptAlive)
})
