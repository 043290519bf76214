/** A fleet of 10,000 nodes with 300 bad boards, which take back every release, good or bad. */
import { test } from 'tap'
import { turnCost } from '../../../daemon/testing/turn-budget.ts'
import { firstState, nextRollout } from './next-rollout.ts'
import type { FleetRelease } from './rollout-facts.ts'
import { type RolloutRules, usualRules } from './rollout-rules.ts'
import { type SimulatedFleet, simulateRollout } from './testing/simulated-fleet.ts'

const target: FleetRelease = { version: '2.0.0', sequence: 2, digest: 'two', floor: 1 }
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
const fleet: SimulatedFleet = { nodes: 10_000, perLink: 50, badPercent: 3, offPercent: 10, rules, outcome: 'committed' }

test('a good release reaches all nodes but the bad boards, which do not stop it', async (t) => {
  const { plan, ran, mostOnLink, hours, nodes } = simulateRollout(fleet, target, firstState)
  const committed = plan.status.rings.reduce((sum, ring) => sum + ring.committed, 0)
  const failed = plan.status.rings.reduce((sum, ring) => sum + ring.failed, 0)
  t.comment(`${committed} committed, ${failed} failed, ${plan.status.stragglers.length} stragglers, ${hours} hours`)
  t.equal(plan.status.phase, 'Complete')
  t.equal(committed + failed, ran)
  t.ok(failed > 200 && failed < 400, `${failed} bad boards`)
  t.equal(committed + failed + plan.status.stragglers.length, nodes.length, 'the others are away')
  t.ok(mostOnLink <= 10, `${mostOnLink} of a link at a time`)
})

test('a release that no board can run is stopped within the first ring', async (t) => {
  const { plan, ran } = simulateRollout({ ...fleet, outcome: 'rolledBack' }, target, firstState)
  t.comment(`${ran} of 10,000 nodes ran it: ${plan.status.message}`)
  t.equal(plan.status.phase, 'Paused')
  t.ok(ran <= 10, `${ran} nodes ran it`)
})

test('a release that ends the network of its node after the trial is stopped while the first ring soaks', async (t) => {
  const { plan, ran } = simulateRollout({ ...fleet, outcome: 'goes away' }, target, firstState)
  t.comment(`${ran} of 10,000 nodes ran it: ${plan.status.message}`)
  t.equal(plan.status.phase, 'Paused')
  t.ok(ran <= 10, `${ran} nodes ran it`)
})

test('in a home a bad release reaches one machine', async (t) => {
  const home: SimulatedFleet = {
    ...fleet,
    nodes: 5,
    badPercent: 0,
    offPercent: 20,
    rules: usualRules,
    outcome: 'rolledBack',
  }
  const { plan, ran } = simulateRollout(home, target, firstState)
  t.same([plan.status.phase, ran], ['Paused', 1])
})

test('a decision over 10,000 nodes is made within a turn of 20 ms', async (t) => {
  const { nodes, plan } = simulateRollout(fleet, target, firstState, 5)
  const facts = { target, releases: [target], rules, nodes, nowMs: 5 * 3_600_000 }
  const decide = { what: 'rollout', bytes: 0, act: async () => nextRollout(plan.state, facts) }
  const { ms } = await turnCost(decide, { enoughMs: 20 })
  t.comment(`${ms.toFixed(1)} ms`)
  t.ok(ms <= 20, `${ms.toFixed(0)} ms`)
})
