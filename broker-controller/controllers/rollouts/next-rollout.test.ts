import { test } from 'tap'
import { firstState, nextRollout, type RolloutPlan, type RolloutState } from './next-rollout.ts'
import type { FleetRelease, RolloutNode } from './rollout-facts.ts'
import { type RolloutRules, usualRules } from './rollout-rules.ts'

const target: FleetRelease = { version: '2.0.0', sequence: 20, digest: 'two', floor: 10 }
const earlier: FleetRelease = { version: '1.0.0', sequence: 10, digest: 'one', floor: 1 }
const startMs = Date.parse('2026-01-01T00:00:00Z')
const minuteMs = 60_000

function aMember(name: string, over: Partial<RolloutNode> = {}): RolloutNode {
  return {
    ...{ name, labels: {}, link: 'home', zone: '', sequence: 10, isConnected: true, lostSinceMs: undefined },
    ...{ isController: false, penaltyUntilMs: 0, admitted: undefined, report: undefined },
    ...over,
  }
}

const admitted = { digest: 'two', sequence: 20, atMs: startMs }
const on = (outcome: NonNullable<RolloutNode['report']>['outcome'], atMs = startMs): Partial<RolloutNode> => ({
  admitted,
  report: { digest: 'two', outcome, atMs },
})
const committed = { ...on('committed'), sequence: 20 }

type Case = {
  readonly rules?: Partial<RolloutRules>
  readonly state?: RolloutState
  readonly nowMs?: number
  readonly releases?: readonly FleetRelease[]
}

function planned(
  nodes: readonly RolloutNode[],
  { rules, state = firstState, nowMs = startMs, releases = [] }: Case = {},
) {
  return nextRollout(state, { target, releases, rules: { ...usualRules, ...rules }, nodes, nowMs })
}

const admittedBy = ({ admit }: RolloutPlan) => admit.map(({ node }) => node)
const two = { rings: [{ name: 'first', labels: { ring: 'first' }, soakSeconds: 600 }], perLink: 10 }
const first = { labels: { ring: 'first' } }

test('a rollout that waits admits no node, keeps those that have begun, and decides again soon', async (t) => {
  const wait = 'The controller comes first'
  const facts = { target, releases: [], rules: usualRules, nowMs: startMs, wait }
  const plan = nextRollout(firstState, { ...facts, nodes: [aMember('a'), aMember('b', on('trial'))] })
  t.match(plan, { admit: [], withdraw: [], dueMs: startMs + minuteMs, status: { phase: 'Waiting', message: wait } })
  const rules = { ...usualRules, rings: [] }
  const done = nextRollout(firstState, { ...facts, rules, nodes: [aMember('a', committed)] })
  t.match(done.status, { phase: 'Complete' }, 'nothing is left to wait')
})

test('one node of a fleet gets the release first, then no other until it has soaked, then one of a link at a time', async (t) => {
  const fleet = ['a', 'b', 'c', 'd'].map((name) => aMember(name, { link: name < 'c' ? 'home' : 'shed' }))
  const begun = planned(fleet)
  t.equal(begun.admit.length, 1)
  t.match(begun.status, { phase: 'Progressing', message: 'Ring canary: 1 nodes to go' })
  const canary = admittedBy(begun)[0]
  const with_ = (over: Partial<RolloutNode>) => fleet.map((one) => (one.name === canary ? { ...one, ...over } : one))

  const trial = planned(with_(on('trial')), { state: begun.state })
  t.same(trial.admit, [])
  const soaking = planned(with_(committed), { state: trial.state, nowMs: startMs + minuteMs })
  t.match(soaking, { admit: [], dueMs: startMs + 61 * minuteMs, status: { phase: 'Soaking' } })
  const still = planned(with_(committed), { state: soaking.state, nowMs: startMs + 60 * minuteMs })
  t.same(still.admit, [])
  const rest = planned(with_(committed), { state: soaking.state, nowMs: startMs + 61 * minuteMs })
  const links = rest.admit.map(({ node }) => fleet.find(({ name }) => name === node)?.link)
  t.same(links.sort(), ['home', 'shed'])
  const all = fleet.map((one) => ({ ...one, ...committed }))
  t.match(planned(all, { state: rest.state, nowMs: startMs + 90 * minuteMs }).status, {
    phase: 'Complete',
    rings: [{ committed: 1 }, { name: 'rest', committed: 3 }],
  })
})

const progress: Readonly<Record<string, readonly [Partial<RolloutNode>, string, Case?]>> = {
  'a node on trial holds up its ring': [on('trial'), 'Progressing'],
  'a node that may take it holds up its ring': [{ admitted }, 'Progressing'],
  'a node that waits holds up its ring': [on('waiting'), 'Progressing'],
  'a node that has stalled holds up none': [{ admitted }, 'Waiting', { nowMs: startMs + 86_400_000 }],
  'a node that is away holds up none, and proves nothing': [{ isConnected: false }, 'Waiting'],
  'a node that is blocked holds up none, and proves nothing': [on('blocked'), 'Waiting'],
  'an agent that does not update itself holds up none': [{ sequence: undefined }, 'Waiting'],
  'a node too old for every release holds up none': [{ sequence: 9 }, 'Waiting'],
  'a node in the penalty box holds up none': [{ penaltyUntilMs: startMs + 1 }, 'Waiting'],
  'a node that leaves the penalty box is next': [{ penaltyUntilMs: startMs }, 'Progressing'],
  'a ring whose nodes had the release before has nothing to prove': [{ sequence: 20 }, 'Soaking'],
  'a newer version counts, too': [{ sequence: 21 }, 'Soaking'],
  'a failure pauses': [on('rolledBack'), 'Paused'],
  'a node that went away on trial a moment ago is waited for': [
    { ...on('trial'), isConnected: false, lostSinceMs: startMs },
    'Progressing',
    { nowMs: startMs + 899_000 },
  ],
  'a node that went away on trial and does not come back is a failure': [
    { ...on('trial'), isConnected: false, lostSinceMs: startMs },
    'Paused',
    { nowMs: startMs + 900_000 },
  ],
  'a node that was switched off on trial has not failed': [{ ...on('trial'), isConnected: false }, 'Waiting'],
  'a node that goes away soon after it has committed is a failure': [
    { ...committed, isConnected: false, lostSinceMs: startMs + 3_600_000 },
    'Paused',
    { nowMs: startMs + 4_500_000 },
  ],
  'a node that goes away much later has not failed': [
    { ...committed, isConnected: false, lostSinceMs: startMs + 3_601_000 },
    'Soaking',
    { nowMs: startMs + 9_000_000 },
  ],
  'what is reported of another release does not count': [
    { admitted, report: { digest: 'one', outcome: 'rolledBack', atMs: startMs } },
    'Progressing',
  ],
}
for (const [sentence, [over, phase, given]] of Object.entries(progress)) {
  test(sentence, async (t) => {
    t.equal(planned([aMember('a', { ...first, ...over }), aMember('b')], { rules: two, ...given }).status.phase, phase)
  })
}

const thresholds: readonly (readonly [
  failed: number,
  fine: number,
  count: number,
  percent: number,
  paused: boolean,
])[] = [
  [1, 0, 1, 0, true],
  [1, 99, 1, 0, true],
  [1, 99, 2, 0, false],
  [2, 98, 2, 0, true],
  [2, 98, 1, 3, false],
  [3, 97, 1, 3, true],
  [2, 0, 3, 10, false],
  [3, 0, 3, 10, true],
]
for (const [failed, fine, failureCount, failurePercent, paused] of thresholds) {
  const limits = `${failureCount} failures and ${failurePercent} %`
  test(`${failed} failures beside ${fine} good ones ${paused ? 'pause' : 'do not pause'} with ${limits}`, async (t) => {
    const made = (count: number, over: Partial<RolloutNode>) =>
      Array.from({ length: count }, (_, at) => aMember(`${at}-${over.sequence}`, { ...first, ...over }))
    const nodes = [...made(failed, on('rolledBack')), ...made(fine, committed), aMember('last')]
    const plan = planned(nodes, { rules: { ...two, failureCount, failurePercent } })
    t.equal(plan.status.phase === 'Paused', paused, plan.status.message)
  })
}

test('nodes on trial count among those that have begun: failures come first, and a good release takes ten minutes', async (t) => {
  const made = (count: number, over: Partial<RolloutNode>) =>
    Array.from({ length: count }, (_, at) => aMember(`${over.report?.outcome}-${at}`, { ...first, ...over }))
  const phaseOf = (failed: number, trials: number, waiting: number) => {
    const nodes = [...made(failed, on('rolledBack')), ...made(trials, on('trial')), ...made(waiting, on('waiting'))]
    return planned(nodes, { rules: { ...two, failureCount: 3, failurePercent: 10 } }).status.phase
  }
  t.equal(phaseOf(3, 28, 0), 'Progressing')
  t.equal(phaseOf(3, 27, 0), 'Paused')
  t.equal(phaseOf(3, 27, 100), 'Paused', 'those that wait have not begun')
})

test('a pause takes the release from the nodes that have not begun, and admits none until it is resumed', async (t) => {
  const nodes = [
    aMember('bad', { ...first, ...on('rolledBack', startMs + 5) }),
    aMember('begun', { ...first, ...on('trial') }),
    aMember('next', { ...first, admitted }),
    aMember('later', first),
  ]
  const paused = planned(nodes, { rules: two })
  t.match(paused, { admit: [], withdraw: ['next'] })
  t.equal(paused.state.paused, '1 of 2 nodes of ring first failed with 2.0.0; first bad, which took it back')
  const healed = nodes.filter(({ name }) => name !== 'bad')
  t.equal(planned(healed, { rules: two, state: paused.state }).status.phase, 'Paused', 'also without the node')
  const { paused: _, ...rest } = paused.state
  const resumed = planned(nodes, { rules: two, state: { ...rest, resumedMs: startMs + 5 } })
  t.same(admittedBy(resumed), ['later'])
})

test('a ring whose only node failed is passed by who resumes it', async (t) => {
  const nodes = [aMember('bad', { ...first, ...on('rolledBack') }), aMember('b')]
  const state = { ring: 0, resumedMs: startMs }
  const soaking = planned(nodes, { rules: two, state })
  t.equal(soaking.status.phase, 'Soaking')
  t.same(admittedBy(planned(nodes, { rules: two, state: soaking.state, nowMs: startMs + 600_000 })), ['b'])
})

test('the fleet, a zone and a link each limit how many update at a time; what stands still takes no place', async (t) => {
  const places = ['home', 'home', 'home', 'shed', 'shed', ''].map((link, at) =>
    aMember(`n${at}`, { link, zone: link === '' ? '' : 'north' }),
  )
  const rest: Partial<RolloutRules> = { rings: [] }
  const of = (rules: Partial<RolloutRules>, nodes = places) =>
    planned(nodes, { rules: { ...rest, ...rules } }).admit.length
  t.equal(of({ perLink: 1 }), 3)
  t.equal(of({ perLink: 2 }), 5)
  t.equal(of({ perLink: 9, perZone: 3 }), 4)
  t.equal(of({ perLink: 9, atOnce: 2 }), 2)
  const busy = places.map((one, at) => (at === 0 ? { ...one, ...on('trial') } : one))
  t.equal(of({ perLink: 1 }, busy), 2)
  const blocked = places.map((one, at) => (at === 0 ? { ...one, ...on('blocked') } : one))
  t.equal(of({ perLink: 1 }, blocked), 3)
})

test('a node that comes back gets the release of a ring that is through, and the soak does not begin again', async (t) => {
  const nodes = [aMember('a', { ...first, ...committed }), aMember('back', first), aMember('b')]
  const state = { ring: 0, soakSinceMs: startMs }
  const during = planned(nodes, { rules: two, state, nowMs: startMs + 1 })
  t.same(admittedBy(during), ['back'])
  t.same(during.state, state)
  const after = planned(nodes, { rules: two, state: { ring: 1 } })
  t.same(new Set(admittedBy(after)), new Set(['back', 'b']))
})

test('the nodes that nothing waits for are named', async (t) => {
  const nodes = [
    aMember('a', { ...first, ...committed }),
    aMember('gone', { ...first, isConnected: false }),
    aMember('b'),
  ]
  t.same(planned(nodes, { rules: two }).status.stragglers, ['gone'])
})

test('a node that is too old takes a release between first, and the target after it', async (t) => {
  const between: FleetRelease = { version: '1.5.0', sequence: 15, digest: 'between', floor: 5 }
  const far = { ...target, floor: 15 }
  const of = (over: Partial<RolloutNode>) =>
    nextRollout(firstState, {
      ...{ target: far, releases: [between, earlier, far], nowMs: startMs },
      ...{ rules: { ...usualRules, rings: [] }, nodes: [aMember('a', over)] },
    }).admit.map(({ release }) => release.version)
  t.same(of({ sequence: 4 }), ['1.0.0'])
  t.same(of({ sequence: 10 }), ['1.5.0'])
  const had = { admitted: { digest: 'between', sequence: 15, atMs: startMs } }
  t.same(of({ sequence: 10, ...had }), [], 'it may take it already')
  t.same(of({ sequence: 15, ...had }), ['2.0.0'])
})

test('a release of an earlier rollout that a node has not begun is withdrawn, or replaced', async (t) => {
  const stale = { admitted: { digest: 'other', sequence: 15, atMs: startMs } }
  const nodes = [aMember('a', { ...first, ...stale }), aMember('b', stale)]
  const plan = planned(nodes, { rules: two })
  t.same(admittedBy(plan), ['a'])
  t.same(plan.withdraw, ['b'])
  const reached = { ...stale, sequence: 15 }
  t.same(planned([aMember('b', reached)], { rules: two }).withdraw, [])
})

test('time alone changes a decision at the end of a soak, a stall, an absence and a penalty', async (t) => {
  const due = (over: Partial<RolloutNode>) => planned([aMember('a', { ...first, ...over })], { rules: two }).dueMs
  t.equal(due(committed), startMs + 600_000)
  t.equal(due({ admitted }), startMs + 86_400_000)
  t.equal(due({ ...on('trial'), isConnected: false, lostSinceMs: startMs }), startMs + 900_000)
  t.equal(due({ penaltyUntilMs: startMs + 5 }), startMs + 5)
  t.equal(due({ isConnected: false }), undefined)
})
