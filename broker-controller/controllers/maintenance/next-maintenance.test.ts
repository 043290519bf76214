import { test } from 'tap'
import { usualMaintenance } from './maintenance-rules.ts'
import { type MaintenanceState, nextMaintenance } from './next-maintenance.ts'
import type { MaintenanceNode } from './node-step.ts'
import { aMachine, aMaintained, nothingPending, startMs } from './testing/maintenance-nodes.ts'

const rules = usualMaintenance
const named = (name: string, over: Partial<MaintenanceNode> = {}) => aMachine({ name, ...over })
const plan = (nodes: readonly MaintenanceNode[], over: object = {}, state: MaintenanceState = {}, nowMs = startMs) =>
  nextMaintenance(state, { rules: { ...rules, ...over }, nodes, nowMs })
const begun = (...args: Parameters<typeof plan>) =>
  plan(...args)
    .steps.filter(({ record }) => record.phase === 'Draining')
    .map(({ node }) => node)
const three = [named('pi-1'), named('pi-2'), named('pi-3')]

test('machines have their turn one after the other', async (t) => {
  t.same(begun(three), ['pi-1'])
  t.same(begun([aMaintained({ phase: 'Checking' }), ...three.slice(1)]), [])
  t.same(begun([aMaintained({ phase: 'Done' }, { report: nothingPending }), ...three.slice(1)]), ['pi-2'])
})

test('limits hold for a link, a zone and the fleet', async (t) => {
  const nodes = [
    named('pi-1', { link: 'attic' }),
    named('pi-2', { link: 'attic' }),
    named('pi-3', { link: 'cellar' }),
    named('pi-4', { link: 'garden' }),
  ]
  t.same(begun(nodes, { atOnce: 9 }), ['pi-1', 'pi-3', 'pi-4'])
  t.same(begun(nodes, { atOnce: 2 }), ['pi-1', 'pi-3'])
  const zone = nodes.map((node) => ({ ...node, zone: 'house' }))
  t.same(begun(zone, { atOnce: 9, perZone: 2 }), ['pi-1', 'pi-3'])
})

test('machines of controllers are last, and one that never had its turn is first', async (t) => {
  const nodes = [
    named('pi-1', { isController: true }),
    named('pi-2', { record: { id: 'a1', phase: 'Done', since: '2025-12-01T00:00:00Z' } }),
    named('pi-3'),
  ]
  const all = { atOnce: 9, perLink: 9 }
  t.same(begun(nodes, all), ['pi-3', 'pi-2', 'pi-1'])
})

const left: { readonly [sentence: string]: readonly [Partial<MaintenanceNode>, RegExp | undefined] } = {
  'that has nothing to do': [{ report: nothingPending }, undefined],
  'of an agent that reports nothing': [{ report: undefined }, undefined],
  'that somebody has cordoned': [{ isCordoned: true }, /cordoned by somebody/],
  'that is not Ready': [{ isReady: false }, /not Ready/],
  'whose agent is on trial': [{ isOnTrial: true }, /on trial/],
  'that does not allow upgrades': [{ report: { ...nothingPending, upgrades: false, security: 1 } }, /osUpgrades/],
  'that does not allow the reboot': [
    { report: { ...nothingPending, rebootRequired: true }, canReboot: false },
    /enableRemoteReboot/,
  ],
  'that had its turn a short while ago': [
    { record: { id: 'a1', phase: 'Done', since: '2026-01-01T12:00:00Z' } },
    undefined,
  ],
}
for (const [sentence, [over, because]] of Object.entries(left))
  test(`a machine is left alone ${sentence}`, async (t) => {
    const { steps, status } = plan([aMachine(over)])
    t.same(steps, [])
    if (because === undefined) t.same(status.unable, [])
    else t.match(status.unable, [{ node: 'pi-1', message: because }])
    t.equal(status.counts.unable, because === undefined ? 0 : 1)
  })

test('a machine has its turn again after a while, and at once where a pause has postponed it', async (t) => {
  const since = '2026-01-01T07:00:00Z'
  t.same(begun([named('pi-1', { record: { id: 'a1', phase: 'Done', since } })]), ['pi-1'])
  const postponed = { id: 'a1', phase: 'Postponed', since: '2026-01-02T02:59:59Z' } as const
  t.same(begun([named('pi-1', { record: postponed })]), ['pi-1'])
})

test('a maintenance begins in the window only, and goes on after it', async (t) => {
  const window = '04:00-05:00'
  const closed = plan([aMaintained({ phase: 'Draining' }), named('pi-2')], { window, atOnce: 9 })
  t.match(closed.steps, [{ node: 'pi-1', record: { phase: 'Upgrading' } }])
  t.equal(closed.steps.length, 1)
  const waits = plan(three, { window })
  t.match(waits, { steps: [], dueMs: startMs + 3_600_000, status: { phase: 'Waiting', message: /opens at 04:00 UTC/ } })
  t.same(begun(three, { window }, {}, startMs + 3_600_000), ['pi-1'])
})

test('the first failure pauses, until an operator resumes', async (t) => {
  const failed = aMaintained({ phase: 'Failed', reason: 'no space' })
  const draining = aMaintained({ phase: 'Draining', id: 'b2' }, { name: 'pi-2', podsLeft: ['default/web'] })
  const upgrading = aMaintained({ phase: 'Upgrading', id: 'c3' }, { name: 'pi-3' })
  const paused = plan([failed, draining, upgrading, named('pi-4')], { atOnce: 9 })
  t.match(paused, {
    state: { paused: 'The maintenance of pi-1 failed: no space' },
    steps: [{ node: 'pi-2', record: { phase: 'Postponed' }, cordon: 'give' }],
    status: { phase: 'Paused', message: /no space/, failed: [{ node: 'pi-1', phase: 'Failed', message: 'no space' }] },
  })
  t.equal(paused.steps.length, 1)
  t.same(begun([named('pi-4')], {}, paused.state), [], 'it stays so')
  const resumed = plan([failed, named('pi-4')], { atOnce: 9 }, { resumedMs: startMs - 1000 })
  t.equal(resumed.state.paused, undefined)
  t.match(resumed.steps, [
    { node: 'pi-1', record: { phase: 'Abandoned' }, cordon: 'give' },
    { node: 'pi-4', record: { phase: 'Draining' } },
  ])
})

test('several failures name the first, and how many more there are', async (t) => {
  const nodes = [10, 50, 30].map((secondsAgo, at) =>
    aMaintained({ phase: 'Failed', reason: `fault ${at}` }, { name: `pi-${at}`, secondsAgo }),
  )
  t.equal(plan(nodes).state.paused, 'The maintenance of pi-1 failed: fault 1, and 2 more nodes failed')
})

test('the status counts the fleet, and shows what each machine waits for', async (t) => {
  const { status } = plan([
    aMaintained({ phase: 'Draining' }, { podsLeft: ['default/web', 'default/db'] }),
    aMaintained(
      { phase: 'Upgrading' },
      { name: 'pi-2', report: { ...nothingPending, upgrade: { id: 'a1', outcome: 'running' } } },
    ),
    named('pi-3'),
    named('pi-4', { report: { ...nothingPending, rebootRequired: true } }),
    named('pi-5', { report: nothingPending }),
  ])
  t.match(status, {
    phase: 'Working',
    message: '2 nodes are under maintenance',
    counts: { nodes: 5, securityUpdates: 2, rebootRequired: 1, due: 2, active: 2, failed: 0, unable: 0 },
    active: [
      { node: 'pi-1', phase: 'Draining', message: 'waits for default/web and 1 more' },
      { node: 'pi-2', phase: 'Upgrading', message: 'the upgrade runs' },
    ],
  })
  t.match(plan([named('pi-5', { report: nothingPending })]).status, { phase: 'Idle' })
  t.match(plan(three).status, { phase: 'Working', counts: { due: 2, active: 1 } })
})

test('the status of many machines is short', async (t) => {
  const nodes = Array.from({ length: 300 }, (_, at) => named(`pi-${at}`, { isReady: false }))
  const { status } = plan(nodes)
  t.equal(status.unable.length, 50)
  t.equal(status.counts.unable, 300)
})
