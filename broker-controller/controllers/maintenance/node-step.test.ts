import { test } from 'tap'
import { usualMaintenance } from './maintenance-rules.ts'
import {
  firstStep,
  isUnderMaintenance,
  type MaintenanceNode,
  type NodeStep,
  needOf,
  nodeStep,
  type StepFacts,
  stepDueMs,
} from './node-step.ts'
import { aMachine, aMaintained, nothingPending, startMs } from './testing/maintenance-nodes.ts'

const facts: StepFacts = {
  ...{ rules: usualMaintenance, isPaused: false, resumedMs: Number.NEGATIVE_INFINITY, nowMs: startMs },
}
const upgrade = (outcome: 'waiting' | 'running' | 'done' | 'failed', reason?: string) => ({
  ...nothingPending,
  upgrade: { id: 'a1', outcome, ...(reason !== undefined && { reason }) },
})
const reboots = { ...nothingPending, rebootRequired: true }
const rebooting = { phase: 'Rebooting', bootID: 'boot-1', requestedAt: '2026-01-02T02:59:00Z' } as const

type Row = readonly [node: MaintenanceNode, expected: object | undefined, over?: Partial<StepFacts>]
const rows: { readonly [sentence: string]: Row } = {
  'a node that was never maintained waits for its turn': [aMachine(), undefined],
  'pods are waited for': [aMaintained({ phase: 'Draining' }, { podsLeft: ['default/web'] }), undefined],
  'a node without pods is upgraded': [
    aMaintained({ phase: 'Draining' }),
    { record: { phase: 'Upgrading', id: 'a1', since: '2026-01-02T03:00:00Z' }, cordon: undefined, reboots: undefined },
  ],
  'a node that requires only a reboot is not upgraded': [
    aMaintained({ phase: 'Draining' }, { report: reboots }),
    {
      record: { phase: 'Rebooting', bootID: 'boot-1', requestedAt: '2026-01-02T03:00:00Z' },
      reboots: true,
    },
  ],
  'a node that cannot be drained in time is given back': [
    aMaintained({ phase: 'Draining' }, { secondsAgo: 1800, podsLeft: ['default/web', 'default/db'] }),
    { record: { phase: 'Failed', reason: /1800 s: default\/web and 1 more stayed/ }, cordon: 'give' },
  ],
  'a node that somebody uncordons while it is drained fails': [
    aMaintained({ phase: 'Draining' }, { isCordoned: false }),
    { record: { phase: 'Failed', reason: /uncordoned by somebody/ }, cordon: 'give' },
  ],
  'a node whose cordon somebody has taken over fails': [
    aMaintained({ phase: 'Draining' }, { isOwnCordon: false }),
    { record: { phase: 'Failed' }, cordon: 'give' },
  ],
  'a node that somebody uncordons later goes on, and its next cordon is that of a person': [
    aMaintained({ phase: 'Upgrading' }, { isCordoned: false }),
    { record: { phase: 'Upgrading', id: 'a1' }, cordon: 'give', message: undefined },
  ],
  'a cordon that somebody has taken over stays': [
    aMaintained({ phase: 'Upgrading' }, { isOwnCordon: false }),
    undefined,
  ],
  'a pause gives a node back that is drained': [
    aMaintained({ phase: 'Draining' }, { podsLeft: ['default/web'] }),
    { record: { phase: 'Postponed', reason: /paused/ }, cordon: 'give' },
    { isPaused: true },
  ],
  'a pause does not stop an upgrade': [aMaintained({ phase: 'Upgrading' }), undefined, { isPaused: true }],
  'an upgrade that runs is waited for': [
    aMaintained({ phase: 'Upgrading' }, { report: upgrade('running'), secondsAgo: 7199 }),
    undefined,
  ],
  'the end of another upgrade does not count': [
    aMaintained({ phase: 'Upgrading', id: 'b2' }, { report: upgrade('done') }),
    undefined,
  ],
  'after an upgrade a node that requires it restarts': [
    aMaintained({ phase: 'Upgrading' }, { report: { ...upgrade('done'), rebootRequired: true } }),
    { record: { phase: 'Rebooting', bootID: 'boot-1' }, reboots: true },
  ],
  'after an upgrade another one does not': [
    aMaintained({ phase: 'Upgrading' }, { report: upgrade('done') }),
    { record: { phase: 'Checking', bootID: undefined }, reboots: undefined },
  ],
  'a machine that may not restart keeps its condition': [
    aMaintained({ phase: 'Upgrading' }, { report: { ...upgrade('done'), rebootRequired: true }, canReboot: false }),
    { record: { phase: 'Checking' }, reboots: undefined },
  ],
  'a node without a boot ID is not restarted': [
    aMaintained({ phase: 'Draining' }, { report: reboots, bootID: '' }),
    { record: { phase: 'Checking' }, reboots: undefined },
  ],
  'an upgrade that fails stays cordoned': [
    aMaintained({ phase: 'Upgrading' }, { report: upgrade('failed', 'no space left') }),
    { record: { phase: 'Failed', reason: 'its upgrade failed: no space left' }, cordon: undefined },
  ],
  'an upgrade that does not end fails': [
    aMaintained({ phase: 'Upgrading' }, { secondsAgo: 7200 }),
    { record: { phase: 'Failed', reason: /7200 s/ } },
  ],
  'the same boot is waited for': [aMaintained(rebooting, { reboot: 'Pending' }), undefined],
  'a node that is away while it restarts is waited for': [
    aMaintained(rebooting, { isReady: false, reboot: 'Pending' }),
    undefined,
  ],
  'another boot ends the reboot': [
    aMaintained(rebooting, { bootID: 'boot-2', secondsAgo: 9999 }),
    { record: { phase: 'Checking', bootID: 'boot-1' } },
  ],
  'a reboot waits for the trial of a release': [
    aMaintained(
      { phase: 'Upgrading', id: 'a1' },
      { isOnTrial: true, report: { ...reboots, upgrade: { id: 'a1', outcome: 'done' } } },
    ),
    undefined,
  ],
  'a request that was refused fails': [
    aMaintained(rebooting, { reboot: 'Refused' }),
    { record: { phase: 'Failed', reason: /refused/ } },
  ],
  'a request that expired is repeated': [
    aMaintained(rebooting, { reboot: 'Expired' }),
    { record: { phase: 'Rebooting', requestedAt: '2026-01-02T03:00:00Z', bootID: 'boot-1' }, reboots: true },
  ],
  'a machine that never restarts fails': [
    aMaintained(rebooting, { reboot: 'Expired', secondsAgo: 1800 }),
    { record: { phase: 'Failed', reason: /did not restart within 1800 s/ } },
  ],
  'health begins to count': [
    aMaintained({ phase: 'Checking' }),
    { record: { phase: 'Checking', healthySince: '2026-01-02T03:00:00Z' }, message: undefined },
  ],
  'health has to last': [aMaintained({ phase: 'Checking', healthySince: '2026-01-02T02:58:01Z' }), undefined],
  'a healthy node is given back': [
    aMaintained({ phase: 'Checking', healthySince: '2026-01-02T02:58:00Z' }),
    { record: { phase: 'Done', reason: undefined }, cordon: 'give' },
  ],
  'health that ends begins again': [
    aMaintained({ phase: 'Checking', healthySince: '2026-01-02T02:58:30Z' }, { isReady: false }),
    { record: { phase: 'Checking', healthySince: undefined } },
  ],
  'a node that is not Ready in time fails': [
    aMaintained({ phase: 'Checking' }, { isReady: false, secondsAgo: 900 }),
    { record: { phase: 'Failed', reason: /not Ready/ }, cordon: undefined },
  ],
  'a fault that it did not have fails': [
    aMaintained(
      { phase: 'Checking', ailing: ['UnderVoltage'] },
      { ailing: ['UnderVoltage', 'DockerUnhealthy'], secondsAgo: 900 },
    ),
    { record: { phase: 'Failed', reason: /maintenance: DockerUnhealthy$/ } },
  ],
  'a fault from before does not count': [
    aMaintained({ phase: 'Checking', ailing: ['UnderVoltage'] }, { ailing: ['UnderVoltage'] }),
    { record: { healthySince: '2026-01-02T03:00:00Z' } },
  ],
  'a node that becomes healthy late is waited for': [
    aMaintained({ phase: 'Checking', healthySince: '2026-01-02T02:59:00Z' }, { secondsAgo: 900 }),
    undefined,
  ],
  'a reboot that has changed nothing fails': [
    aMaintained({ phase: 'Checking', bootID: 'boot-1', healthySince: '2026-01-02T02:58:00Z' }, { report: reboots }),
    { record: { phase: 'Failed', reason: /still requires a reboot/ } },
  ],
  'a failure stays until it is resumed': [aMaintained({ phase: 'Failed' }), undefined, { isPaused: true }],
  'a failure that was resumed is given back': [
    aMaintained({ phase: 'Failed', reason: 'no space' }),
    { record: { phase: 'Abandoned', reason: 'no space', since: '2026-01-02T02:59:00Z' }, cordon: 'give' },
    { resumedMs: startMs - 30_000 },
  ],
  'a failure after that is not': [aMaintained({ phase: 'Failed' }), undefined, { resumedMs: startMs - 90_000 }],
  'what has ended stays so': [aMaintained({ phase: 'Done' }, { secondsAgo: 1e6 }), undefined],
}
for (const [sentence, [node, expected, over]] of Object.entries(rows))
  test(sentence, async (t) => {
    const step = nodeStep(node, { ...facts, ...over })
    if (expected === undefined) t.equal(step, undefined)
    else t.match(step, { node: 'pi-1', before: node.record, ...expected } as Partial<NodeStep>)
  })

test('a maintenance begins with the cordon, and keeps the faults from before', async (t) => {
  const step = firstStep(aMachine({ ailing: ['UnderVoltage'] }), startMs)
  t.match(step, {
    ...{ node: 'pi-1', before: undefined, cordon: 'take', message: /Cordoned/ },
    record: { id: '2026-01-02T03:00:00Z', phase: 'Draining', since: '2026-01-02T03:00:00Z', ailing: ['UnderVoltage'] },
  })
})

test('the need of a machine is an upgrade before a reboot', async (t) => {
  t.equal(needOf(aMachine()), 'upgrade')
  t.equal(needOf(aMachine({ report: { ...reboots, security: 1 } })), 'upgrade')
  t.equal(needOf(aMachine({ report: { ...reboots, security: 1, upgrades: false } })), 'reboot')
  t.equal(needOf(aMachine({ report: { ...nothingPending, security: 1, upgrades: false } })), undefined)
  t.equal(needOf(aMachine({ report: nothingPending })), undefined)
  t.equal(needOf(aMachine({ report: undefined })), undefined)
})

test('time alone ends each phase', async (t) => {
  const due = (node: MaintenanceNode) => ((stepDueMs(node, usualMaintenance) ?? Number.NaN) - startMs) / 1000 + 60
  t.equal(stepDueMs(aMachine(), usualMaintenance), undefined)
  t.equal(due(aMaintained({ phase: 'Draining' })), 1800)
  t.equal(due(aMaintained({ phase: 'Upgrading' })), 7200)
  t.equal(due(aMaintained(rebooting)), 1800)
  t.equal(due(aMaintained({ phase: 'Checking' })), 900)
  t.equal(due(aMaintained({ phase: 'Checking', healthySince: '2026-01-02T02:59:30Z' })), 150)
  t.equal(due(aMaintained({ phase: 'Checking', healthySince: '2026-01-02T03:13:50Z' })), 1010, 'healthy late')
  t.equal(due(aMaintained({ phase: 'Done' })), 72_000)
  t.ok(isUnderMaintenance(aMaintained(rebooting)))
  for (const phase of ['Done', 'Failed', 'Abandoned', 'Postponed'] as const)
    t.notOk(isUnderMaintenance(aMaintained({ phase })), phase)
  t.match(nodeStep(aMaintained({ phase: 'Upgrading', since: 'soon' }), facts), { record: { phase: 'Failed' } })
})
