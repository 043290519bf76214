import { test } from 'tap'
import { publishWaitMs } from './publish-pace.ts'

test('a single change is published after 200 ms, lasting churn every 2 s', async (t) => {
  t.equal(publishWaitMs(undefined, 0), 200)
  const waits: number[] = []
  let last = { atMs: 0, waitedMs: 0 }
  for (let now = 0; waits.length < 6; now = last.atMs) {
    const waitedMs = publishWaitMs(last, now)
    waits.push(waitedMs)
    last = { atMs: now + waitedMs, waitedMs }
  }
  t.same(waits, [200, 400, 800, 1600, 2000, 2000])
  t.equal(publishWaitMs(last, last.atMs + 4_999), 2000)
  t.equal(publishWaitMs(last, last.atMs + 5_000), 200, 'the churn is over')
})
