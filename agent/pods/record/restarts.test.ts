import { test } from 'tap'
import {
  afterRestart,
  type CrashBackoff,
  crashWaitMs,
  durationText,
  restartPolicyOf,
  shouldRestart,
  stoppedWaitMs,
} from './restarts.ts'

test('the restart policy decides by the exit code', async (t) => {
  t.same([shouldRestart('Always', 0), shouldRestart('OnFailure', 0), shouldRestart('Never', 0)], [true, false, false])
  t.same([shouldRestart('Always', 1), shouldRestart('OnFailure', 1), shouldRestart('Never', 1)], [true, true, false])
})

test('the first restart is at once, then waits double up to five minutes', async (t) => {
  let last: CrashBackoff | undefined
  let nowMs = 0
  const waits: number[] = []
  for (let i = 0; i < 8; i++) {
    const waitMs = crashWaitMs(last, nowMs)
    waits.push(waitMs / 1000)
    last = afterRestart(last, nowMs, nowMs + waitMs)
    nowMs += waitMs + 1_000 // it runs for a second
  }
  t.same(waits, [0, 10, 20, 40, 80, 160, 300, 300])
})

test('a container that ran for ten minutes starts a new story', async (t) => {
  const last = { waitMs: 160_000, restartedAtMs: 1_000 }
  t.equal(crashWaitMs(last, 601_000), 160_000)
  t.equal(crashWaitMs(last, 601_001), 0)
  t.same(afterRestart(last, 601_001, 601_001), { waitMs: 10_000, restartedAtMs: 601_001 })
})

test('durations read as Kubernetes writes them', async (t) => {
  t.same([10_000, 60_000, 160_000, 300_000].map(durationText), ['10s', '1m0s', '2m40s', '5m0s'])
})

test('a pod restarts its containers always, unless it names another policy', async (t) => {
  t.same(['OnFailure', 'Never', 'Always', undefined, 'Sometimes'].map(restartPolicyOf), [
    'OnFailure',
    'Never',
    'Always',
    'Always',
    'Always',
  ])
})

test('a container that a failed probe stops starts at once if it ran at least as long as the back-off', async (t) => {
  const last = { waitMs: 40_000, restartedAtMs: 10_000 }
  t.equal(stoppedWaitMs(undefined, 50_000, undefined), 0, 'the first time')
  t.equal(stoppedWaitMs(undefined, 50_000, 10_000), 0, 'the second time')
  t.equal(stoppedWaitMs(last, 50_000, 10_000), 0)
  t.equal(stoppedWaitMs(last, 49_999, 10_000), 40_000)
})
