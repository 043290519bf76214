import { test } from 'tap'
import { longestWaitMs, publishWaitMs } from './publish-pace.ts'

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

test('under lasting churn small messages to few nodes wait for 700 ms, and more bytes for up to 2 s', async (t) => {
  t.equal(longestWaitMs(0, 0), 700)
  t.equal(longestWaitMs(10, 600_000), 700)
  t.equal(longestWaitMs(10, 700_000), 700, '10 MB/s')
  t.equal(longestWaitMs(20, 600_000), 1_200)
  t.equal(longestWaitMs(100, 600_000), 2_000)
  t.equal(publishWaitMs({ atMs: 0, waitedMs: 400 }, 1_000, 700), 700)
  t.equal(publishWaitMs({ atMs: 0, waitedMs: 200 }, 1_000, 700), 400)
  t.equal(publishWaitMs({ atMs: 0, waitedMs: 2_000 }, 1_000, 700), 700, 'the fleet has become smaller')
})
