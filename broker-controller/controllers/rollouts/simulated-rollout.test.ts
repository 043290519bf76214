/** Simulated fleets with bad boards, which take back every release, good or bad. `bench/rollouts/rollout.ts` has 10,000 nodes. */
import { test } from 'tap'
import { turnCost } from '../../../daemon/testing/turn-budget.ts'
import { nextRollout } from './next-rollout.ts'
import { type RolloutRules, usualRules } from './rollout-rules.ts'
import { type SimulatedFleet, simulatedTarget, simulateRollout } from './testing/simulated-fleet.ts'

const rules: RolloutRules = {
  ...usualRules,
  rings: [
    { name: 'canary', count: 10, soakSeconds: 3600 },
    { name: 'early', percent: 1, soakSeconds: 3600 },
    { name: 'tenth', percent: 10, soakSeconds: 3600 },
  ],
  perLink: 10,
  failureCount: 3,
  failurePercent: 10,
}
const fleet: SimulatedFleet = { nodes: 1_000, perLink: 50, badPercent: 3, offPercent: 10, rules }
const everywhere = (kind: 'takenBack' | 'goesAway') => ({ kind, percent: 100 })

test('a good release reaches all nodes but the bad boards, which do not stop it', async (t) => {
  const { plan, committed, failed, pauses, mostOnLink, hours, members } = simulateRollout(fleet)
  const stragglers = plan.status.stragglers.length
  t.comment(`${committed} committed, ${failed} failed, ${stragglers} stragglers, ${pauses} pauses, ${hours} hours`)
  t.equal(plan.status.phase, 'Complete', plan.status.message)
  t.ok(failed > 15 && failed < 50, `${failed} bad boards`)
  t.equal(committed + failed + stragglers, members.length, 'the others are away')
  // A node that comes back with a trial goes on with it, though another one has its place since.
  t.ok(mostOnLink <= 12, `${mostOnLink} of a link at a time`)
})

test('a release that no board can run is stopped within the first ring', async (t) => {
  const { plan, ran } = simulateRollout({ ...fleet, fault: everywhere('takenBack') })
  t.comment(`${ran} of 1,000 nodes ran it: ${plan.status.message}`)
  t.equal(plan.status.phase, 'Paused')
  t.ok(ran <= 10, `${ran} nodes ran it`)
})

test('a release that ends the network of its node after the trial is stopped while the first ring soaks', async (t) => {
  const { plan, ran } = simulateRollout({ ...fleet, fault: everywhere('goesAway') })
  t.comment(`${ran} of 1,000 nodes ran it: ${plan.status.message}`)
  t.equal(plan.status.phase, 'Paused')
  t.ok(ran <= 10, `${ran} nodes ran it`)
})

test('in a home a bad release reaches one machine', async (t) => {
  const home = { ...fleet, nodes: 5, badPercent: 0, offPercent: 20, rules: usualRules }
  const { plan, ran } = simulateRollout({ ...home, fault: everywhere('takenBack') })
  t.same([plan.status.phase, ran], ['Paused', 1])
})

test('a simulation with the same seed is the same', async (t) => {
  const shown = (seed: number) => {
    const { ran, hours, hoursTo } = simulateRollout({ ...fleet, nodes: 300, seed })
    return [ran, hours, hoursTo(50), hoursTo(90)]
  }
  t.same(shown(1), shown(1))
  t.not(String(shown(2)), String(shown(1)))
})

test('a decision over 10,000 nodes is made within a turn of 20 ms', async (t) => {
  const { members, state } = simulateRollout({ ...fleet, nodes: 10_000 }, 4)
  const nowMs = Date.parse('2026-01-01T04:00:00Z')
  const facts = { target: simulatedTarget, releases: [simulatedTarget], rules, nodes: members, nowMs }
  const decide = { what: 'rollout', bytes: 0, act: async () => nextRollout(state, facts) }
  const { ms } = await turnCost(decide, { enoughMs: 20 })
  t.comment(`${ms.toFixed(1)} ms`)
  t.ok(ms <= 20, `${ms.toFixed(0)} ms`)
})
