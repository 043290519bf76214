import { test } from 'tap'
import {
  type FleetRelease,
  type NodeProgress,
  nextStep,
  penaltyUntilMs,
  type RolloutNode,
  rolloutProgress,
} from './rollout-facts.ts'
import { usualRules } from './rollout-rules.ts'

const target: FleetRelease = { version: '2.0.0', sequence: 20, digest: 'two', floor: 10 }
const between: FleetRelease = { version: '1.5.0', sequence: 15, digest: 'half', floor: 5 }
const rules = { lostSeconds: 900, watchSeconds: 3600 }
const tookMs = 1_000_000

function aNode(over: Partial<RolloutNode>): RolloutNode {
  return {
    ...{ name: 'pi-1', labels: {}, link: 'home', zone: '', sequence: 10, isConnected: true, lostSinceMs: undefined },
    ...{ isController: false, penaltyUntilMs: 0, admitted: undefined, report: undefined },
    ...over,
  }
}
const to = ({ digest, sequence }: FleetRelease) => ({ admitted: { digest, sequence, atMs: 0 } })
const reports = (outcome: NonNullable<RolloutNode['report']>['outcome'], { digest } = target) => ({
  report: { digest, outcome, atMs: tookMs },
})

test('the progress of a node follows from its version, what it may take, and what it reported of that', async (t) => {
  const failed: NodeProgress = { is: 'failed', atMs: tookMs, how: 'took it back' }
  const done = { sequence: 20 }
  const cases: readonly (readonly [string, Partial<RolloutNode>, NodeProgress | NodeProgress['is'], FleetRelease?])[] =
    [
      ['nothing was admitted', {}, 'idle'],
      ['an agent that does not update itself', { sequence: undefined, ...to(target), ...reports('trial') }, 'unable'],
      ['it has not begun', to(target), 'admitted'],
      ['it waits for its window', { ...to(target), ...reports('waiting') }, 'admitted'],
      ['on trial', { ...to(target), ...reports('trial') }, 'trial'],
      ['it cannot take it', { ...to(target), ...reports('blocked') }, 'blocked'],
      ['it took it back', { ...to(target), ...reports('rolledBack') }, failed],
      ['a report of another release', { ...to(target), ...reports('rolledBack', between) }, 'admitted'],
      ['a report without an admission', reports('rolledBack'), 'idle'],
      ['committed', { ...done, ...to(target), ...reports('committed') }, 'committed'],
      ['it had the version before', done, 'committed'],
      ['it has a newer version', { sequence: 21 }, 'committed'],
      ['it took the step back', { ...to(between), ...reports('rolledBack', between) }, failed, between],
      ['admitted to the step', to(between), 'admitted', between],
      ['the step is behind it', { sequence: 15, ...to(between), ...reports('committed', between) }, 'idle'],
      ['an earlier rollout', { ...to(between), ...reports('blocked', between) }, 'idle'],
    ]
  for (const [title, over, expected, step = target] of cases) {
    const progress = typeof expected === 'string' ? { is: expected } : expected
    t.same(rolloutProgress(aNode(over), target, step, rules, tookMs), progress, title)
  }
  t.same(
    rolloutProgress(aNode({ sequence: 1 }), target, undefined, rules, 0),
    { is: 'unable' },
    'no release follows it',
  )
  t.same(rolloutProgress(aNode({ sequence: 20 }), target, undefined, rules, 0), { is: 'committed' })
})

test('a node that goes away on trial, or while it is watched, has failed when it stays away', async (t) => {
  const at = (seconds: number) => tookMs + seconds * 1000
  const gone = (over: Partial<RolloutNode>, lostSinceMs: number | undefined, nowMs: number) =>
    rolloutProgress(aNode({ ...to(target), ...over, lostSinceMs }), target, target, rules, nowMs)
  const trial = reports('trial')
  const committed = { sequence: 20, ...reports('committed') }
  const away = (atMs: number) => ({ is: 'failed', atMs, how: 'is away since it took it' })
  t.same(gone(trial, at(10), at(909)), { is: 'trial' })
  t.same(gone(trial, at(10), at(910)), away(at(910)))
  t.same(gone(trial, undefined, at(100_000)), { is: 'trial' }, 'it announced that it leaves')
  t.same(gone(committed, at(3_600), at(4_499)), { is: 'committed' })
  t.same(gone(committed, at(3_600), at(4_500)), away(at(4_500)))
  t.same(gone(committed, at(3_601), at(100_000)), { is: 'committed' }, 'it was watched for long enough')
  t.same(gone({}, at(10), at(100_000)), { is: 'admitted' }, 'it has not begun')
  t.same(gone(reports('waiting'), at(10), at(100_000)), { is: 'admitted' })
  const step = { ...to(between), sequence: 15, ...reports('committed', between) }
  t.same(gone(step, at(10), at(100_000)), { is: 'idle' }, 'a step on the way is not watched')
})

test('a node takes the target where it can, else the newest release between that it can', async (t) => {
  const older: FleetRelease = { version: '1.2.0', sequence: 12, digest: 'older', floor: 1 }
  const newer: FleetRelease = { version: '3.0.0', sequence: 30, digest: 'three', floor: 1 }
  const releases = [older, between, newer, target]
  const cases: readonly (readonly [sequence: number, version: string | undefined])[] = [
    [19, '2.0.0'],
    [10, '2.0.0'],
    [9, '1.5.0'],
    [5, '1.5.0'],
    [4, '1.2.0'],
    [1, '1.2.0'],
    [0, undefined],
  ]
  for (const [sequence, version] of cases) {
    t.equal(nextStep(sequence, target, releases)?.version, version, `from ${sequence}`)
    t.equal(nextStep(sequence, target, releases.toReversed())?.version, version, `from ${sequence}, in any order`)
  }
  t.equal(nextStep(9, target, [newer]), undefined, 'none is behind the target')
  t.equal(nextStep(12, { ...target, floor: 13 }, [older]), undefined, 'none goes back, or to itself')
})

test('the penalty grows with each release that a node took back, to a week', async (t) => {
  const until = (failures: number) => penaltyUntilMs({ failures, failedMs: 1000 }, usualRules)
  t.same([0, 1, 2, 9].map(until), [0, 86_401_000, 172_801_000, 604_801_000])
})
