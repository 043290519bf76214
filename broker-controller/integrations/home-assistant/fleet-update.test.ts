import { test } from 'tap'
import type { RolloutWish } from '../../controllers/rollouts/rollout-object.ts'
import { usualRules } from '../../controllers/rollouts/rollout-rules.ts'
import { type FleetUpdateFacts, fleetUpdateValues, installStep, type WatchedRollout } from './fleet-update.ts'

const wishOf = (sequence: number): RolloutWish => {
  const target = { version: `1.${sequence}.0`, sequence, digest: String(sequence % 10).repeat(64), floor: 1 }
  return { target, releases: [target], rules: usualRules }
}
const at = (sequence: number) => ({ version: `1.${sequence}.0`, sequence })
const status = (phase: string, committed: number, failed = 0): NonNullable<WatchedRollout['status']> => ({
  ...{ phase, message: 'Ring rest: 7 nodes to go', stragglers: [], stragglerCount: 0 },
  rings: [
    { name: 'canary', nodes: 1, committed: 1, failed: 0, updating: 0 },
    { name: 'rest', nodes: 11, committed, failed, updating: 0 },
  ],
})
const rolloutOf = (sequence: number, over: Partial<WatchedRollout> = {}): WatchedRollout => ({
  ...{ wish: wishOf(sequence), state: { ring: 1 }, status: status('Progressing', 3), isPausedByOperator: false },
  ...over,
})
const paused = {
  state: { ring: 1, paused: '1 of 4 nodes of ring rest failed with 1.5.0; first pi-1, which took it back' },
}
const of = (over: Partial<FleetUpdateFacts>) => ({ installed: at(4), newest: wishOf(5), rollout: undefined, ...over })

test('the fleet shows the oldest version, the newest release, and how many nodes have it', async (t) => {
  const values = (over: Partial<FleetUpdateFacts>) => fleetUpdateValues(of(over))
  t.same(values({}), { agents_update: '1.4.0', agents_latest: '1.5.0', agents_percent: null, agents_summary: '' })
  t.same(values({ rollout: rolloutOf(5) }), {
    ...{ agents_update: '1.4.0', agents_latest: '1.5.0', agents_percent: 33 },
    agents_summary: '4 of 12 nodes have 1.5.0. Ring rest: 7 nodes to go.',
  })
  t.match(values({ rollout: rolloutOf(5, { status: undefined }) }), {
    ...{ agents_percent: 0, agents_summary: 'The rollout of 1.5.0 begins.' },
  })
  t.match(values({ rollout: rolloutOf(5, { status: status('Complete', 10, 1) }) }), {
    ...{ agents_percent: null, agents_summary: /^11 of 12 nodes have 1\.5\.0, 1 failed with it/ },
  })
  t.match(values({ rollout: rolloutOf(5, { ...paused, status: status('Paused', 3, 1) }) }), {
    agents_percent: null,
    agents_summary:
      'Paused: 1 of 4 nodes of ring rest failed with 1.5.0; first pi-1, which took it back. 4 of 12 nodes have 1.5.0, 1 failed with it.',
  })
  t.match(values({ rollout: rolloutOf(5), newest: wishOf(6) }), { agents_latest: '1.6.0', agents_percent: null })
  t.match(values({ rollout: rolloutOf(5), newest: undefined }), { agents_latest: '1.5.0', agents_percent: 33 })
  t.match(values({ rollout: rolloutOf(6) }), { agents_latest: '1.6.0', agents_percent: 33 })
  t.match(values({ installed: at(7) }), { agents_update: '1.7.0', agents_latest: '1.7.0' }, 'nothing is newer')
})

test('there is no entity without a release, and without an agent that updates itself', async (t) => {
  t.equal(fleetUpdateValues(of({ newest: undefined })), undefined)
  t.equal(fleetUpdateValues(of({ installed: undefined })), undefined)
})

test('texts are bounded: Home Assistant refuses the state of a longer summary', async (t) => {
  const long = rolloutOf(5, { state: { ring: 0, paused: `x\n\u202e${'y'.repeat(1_000)}` } })
  const values = fleetUpdateValues(of({ rollout: long, installed: { version: 'v'.repeat(200), sequence: 4 } }))
  t.equal(values?.agents_summary.length, 250)
  t.match(values?.agents_summary, /^Paused: x yy/)
  t.equal(values?.agents_update.length, 64)
})

const steps: Readonly<Record<string, readonly [Partial<FleetUpdateFacts>, 'start' | 'resume' | 'none']>> = {
  'the newest release begins where there was no rollout': [{}, 'start'],
  'nothing begins without a release': [{ newest: undefined }, 'none'],
  'nothing begins where all nodes have it': [{ installed: at(5) }, 'none'],
  'nothing begins where no agent updates itself': [{ installed: undefined }, 'none'],
  'a rollout that goes on is left alone': [{ rollout: rolloutOf(5) }, 'none'],
  'one that has begun without a decision is left alone': [{ rollout: rolloutOf(5, { status: undefined }) }, 'none'],
  'one that failures have paused goes on': [{ rollout: rolloutOf(5, paused) }, 'resume'],
  'one of a release that is no longer served goes on': [{ newest: undefined, rollout: rolloutOf(5, paused) }, 'resume'],
  'a newer release replaces one that is under way': [{ newest: wishOf(6), rollout: rolloutOf(5) }, 'start'],
  'a newer release replaces one that failures have paused': [
    { newest: wishOf(6), rollout: rolloutOf(5, paused) },
    'start',
  ],
  'what an operator pauses stays paused': [{ rollout: rolloutOf(5, { ...paused, isPausedByOperator: true }) }, 'none'],
  'what an operator pauses is not replaced': [
    { newest: wishOf(6), rollout: rolloutOf(5, { ...paused, isPausedByOperator: true }) },
    'none',
  ],
}
for (const [sentence, [facts, step]] of Object.entries(steps))
  test(sentence, async (t) => {
    const made = installStep(of(facts))
    t.equal(made.step, step)
    if (made.step === 'start') t.equal(made.wish, facts.newest ?? made.wish)
  })
