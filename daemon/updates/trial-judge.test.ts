import { test } from 'tap'
import { fakeClock } from '../testing/fake-clock.ts'
import { quietLog } from '../testing/quiet-log.ts'
import type { TrialVerdict } from './next-start.ts'
import { type TrialWatch, watchTrial } from './trial-judge.ts'
import { judgeTrial, nothingSeen, type TrialHistory, type TrialLook } from './trial-verdict.ts'
import { initialUpdateState, type UpdateState } from './update-state.ts'

const trial = {
  ...{ version: '1.5.0', sequence: 5, digest: 'five', attemptsLeft: 2 },
  ...{ wasConnected: true, containers: ['a'], epoch: 'boot' },
}
const well: Omit<TrialLook, 'nowMs'> = {
  unit: { state: 'running', invocation: '1', exitStatus: 0 },
  containers: new Set(['a']),
  epoch: 'boot',
  controller: 'sees',
}
const times = { trialMs: 600_000, deafMs: 300_000, longestMs: 3_600_000 }
const everyMs = 10_000

/** A trial that begins in this state, and what was done in it. */
function watched() {
  const clock = fakeClock()
  const stop = new AbortController()
  const given = {
    state: { ...initialUpdateState, trial } as UpdateState,
    look: async () => well,
    started: trial.digest as string | undefined,
    disk: async (): Promise<void> => undefined,
  }
  const done: string[] = []
  const watch: TrialWatch<typeof well, TrialHistory> = {
    nothingSeen,
    judge: (history, seen, trial) => judgeTrial(history, seen, { ...times, ...trial }),
    loadState: async () => given.state,
    started: async () => given.started,
    look: () => given.look(),
    async saveVerdict({ digest, outcome }: TrialVerdict) {
      await given.disk()
      done.push(`${outcome} ${digest}`)
    },
    commit: async () => void done.push('commit'),
    restart: async () => void done.push('restart'),
  }
  return { clock, stop, given, done, watch }
}

test('a healthy version is committed, and the judge ends', async (t) => {
  const { clock, stop, done, watch } = watched()
  const end = watchTrial(watch, everyMs, clock, quietLog(t), stop.signal)
  await clock.advance(590_000)
  t.same(done, [])
  await clock.advance(10_000)
  await end
  t.same(done, ['commit five', 'commit'])
})

test('a bad version is rejected, and the agent started again once', async (t) => {
  const { clock, stop, given, done, watch } = watched()
  given.look = async () => ({ ...well, unit: { state: 'failed', invocation: '1', exitStatus: 78 } })
  await watchTrial(watch, everyMs, clock, quietLog(t), stop.signal)
  t.same(done, ['reject five', 'restart'])
})

test('where the verdict cannot be saved the agent is started again all the same; a good one is saved later', async (t) => {
  const full = async () => {
    throw new Error('ENOSPC')
  }
  const bad = watched()
  bad.given.disk = full
  bad.given.look = async () => ({ ...well, containers: new Set() })
  await watchTrial(bad.watch, everyMs, bad.clock, quietLog(t, 'Cannot save the verdict on a trial'), bad.stop.signal)
  t.same(bad.done, ['restart'])

  const good = watched()
  good.given.disk = full
  const log = quietLog(t, 'Cannot save the verdict on a trial')
  const end = watchTrial(good.watch, everyMs, good.clock, log, good.stop.signal)
  await good.clock.advance(700_000)
  t.same(good.done, [])
  good.given.disk = async () => undefined
  await good.clock.advance(10_000)
  await end
  t.same(good.done, ['commit five', 'commit'])
})

test('a version that was not started is not judged; without a trial there is nothing to do', async (t) => {
  const { clock, stop, given, done, watch } = watched()
  given.started = undefined
  const end = watchTrial(watch, everyMs, clock, quietLog(t), stop.signal)
  await clock.advance(900_000)
  t.same(done, [])
  given.state = initialUpdateState
  await clock.advance(10_000)
  await end
  t.same(done, [])
})

test('another version on trial is judged from its own start', async (t) => {
  const { clock, stop, given, done, watch } = watched()
  const end = watchTrial(watch, everyMs, clock, quietLog(t), stop.signal)
  await clock.advance(500_000)
  given.state = { ...initialUpdateState, trial: { ...trial, digest: 'six' } }
  given.started = 'six'
  await clock.advance(500_000)
  t.same(done, [])
  await clock.advance(200_000)
  await end
  t.same(done, ['commit six', 'commit'])
})

test('what cannot be looked at is judged neither good nor bad, and the trial ends', async (t) => {
  const { clock, stop, given, done, watch } = watched()
  given.look = async () => {
    throw new Error('systemctl does not answer')
  }
  const end = watchTrial(watch, everyMs, clock, quietLog(t), stop.signal)
  await clock.advance(3_600_000)
  await end
  t.same(done, ['inconclusive five', 'restart'])
})

test('the judge ends when it is stopped, without a verdict', async (t) => {
  const { clock, stop, done, watch } = watched()
  const end = watchTrial(watch, everyMs, clock, quietLog(t), stop.signal)
  await clock.advance(100_000)
  stop.abort()
  await end
  t.same(done, [])
})
