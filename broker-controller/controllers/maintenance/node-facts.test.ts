import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { maintenanceFactsOf, maintenanceNode, withStep } from './node-facts.ts'
import { firstStep, type NodeStep } from './node-step.ts'
import { nothingPending, startMs } from './testing/maintenance-nodes.ts'

const record = { id: 'a1', phase: 'Draining', since: '2026-01-02T03:00:00Z' } as const
const written = (over: object) => ({ 'bramble.dev/maintenance': JSON.stringify({ ...record, ...over }) })
const facts = (node: ReturnType<typeof aNode>) => maintenanceNode(node, new Set(['192.0.2.11']), ['default/web'])

test('what is written on a Node is what its maintenance is decided by', async (t) => {
  const node = aNode({
    ...{ name: 'pi-1', bootID: 'boot-1', unschedulable: true },
    annotations: {
      ...written({ phase: 'Rebooting', requestedAt: '2026-01-02T03:00:00Z' }),
      'bramble.dev/cordoned-by': 'maintenance',
      'bramble.dev/remote-reboot': 'enabled',
      'bramble.dev/os-updates': JSON.stringify(nothingPending),
      'bramble.dev/agent-update': JSON.stringify({
        ...{ version: '1.0.0', sequence: 10 },
        release: { version: '1.1.0', sequence: 11, outcome: 'trial' },
      }),
      'bramble.dev/reboot-status': JSON.stringify({ requestedAt: '2026-01-02T03:00:00Z', state: 'Expired' }),
    },
  })
  t.match(facts(node), {
    ...{ name: 'pi-1', link: '192.0.2.0/24', isController: true, isReady: true, bootID: 'boot-1' },
    ...{ isCordoned: true, isOwnCordon: true, canReboot: true, isOnTrial: true, reboot: 'Expired' },
    ...{ report: nothingPending, record: { phase: 'Rebooting' }, podsLeft: ['default/web'] },
  })
  const status = JSON.stringify({ requestedAt: '2026-01-01T00:00:00Z', state: 'Refused' })
  const other = aNode({ annotations: { ...written({}), 'bramble.dev/reboot-status': status } })
  t.match(facts(other), { reboot: undefined, isOwnCordon: false, canReboot: false, isOnTrial: false })
})

test('conditions of health count, and a heartbeat does not', async (t) => {
  const conditions = [
    { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-02T03:00:00Z' },
    { type: 'UnderVoltage', status: 'True' },
    { type: 'MemoryPressure', status: 'True' },
  ] as const
  const node = aNode({ conditions })
  t.same(facts(node).ailing, ['UnderVoltage'])
  const later = aNode({ conditions: conditions.map((one) => ({ ...one, lastHeartbeatTime: '2026-01-02T03:01:00Z' })) })
  t.equal(maintenanceFactsOf(node), maintenanceFactsOf(later))
  t.not(maintenanceFactsOf(node), maintenanceFactsOf(aNode()))
})

test('annotations that cannot be read count as missing', async (t) => {
  for (const text of [
    '',
    '{',
    '[]',
    '{"id":"a b","phase":"Draining","since":""}',
    '{"id":"a1","phase":"Sleeping","since":""}',
  ])
    t.match(facts(aNode({ annotations: { 'bramble.dev/maintenance': text, 'bramble.dev/os-updates': text } })), {
      ...{ record: undefined, report: undefined },
    })
})

test('a maintenance begins with its own cordon, never with that of a person', async (t) => {
  const step = firstStep(facts(aNode()), startMs)
  const begun = withStep(aNode(), step)
  t.equal(begun?.spec?.unschedulable, true)
  t.match(begun?.metadata.annotations, {
    'bramble.dev/cordoned-by': 'maintenance',
    'bramble.dev/maintenance': /Draining/,
  })
  t.equal(withStep(aNode({ unschedulable: true }), step), undefined)
  t.equal(withStep(aNode({ annotations: written({}) }), step), undefined, 'another controller was faster')
})

const end: NodeStep = { node: 'pi-1', before: record, record: { ...record, phase: 'Done' }, cordon: 'give' }

test('only the cordon of the maintenance is taken back', async (t) => {
  const own = aNode({ unschedulable: true, annotations: { ...written({}), 'bramble.dev/cordoned-by': 'maintenance' } })
  const done = withStep(own, end)
  t.equal(done?.spec?.unschedulable, undefined)
  t.equal(done?.metadata.annotations?.['bramble.dev/cordoned-by'], undefined)
  t.match(done?.metadata.annotations, { 'bramble.dev/maintenance': /Done/ })
  const persons = withStep(aNode({ unschedulable: true, annotations: written({}) }), end)
  t.equal(persons?.spec?.unschedulable, true, 'a person has removed the annotation to keep it cordoned')
})

test('a step between keeps the cordon, and a reboot is requested as by an operator', async (t) => {
  const own = aNode({ unschedulable: true, annotations: { ...written({}), 'bramble.dev/cordoned-by': 'maintenance' } })
  const next = { ...record, phase: 'Rebooting', requestedAt: '2026-01-02T03:05:00Z' } as const
  const changed = withStep(own, { node: 'pi-1', before: record, record: next, reboots: true })
  t.equal(changed?.spec?.unschedulable, true)
  t.match(changed?.metadata.annotations, {
    'bramble.dev/cordoned-by': 'maintenance',
    'bramble.dev/reboot-requested-at': '2026-01-02T03:05:00Z',
  })
})

test('a step that was decided on another record is not taken', async (t) => {
  for (const over of [{ id: 'b2' }, { phase: 'Upgrading' }, { requestedAt: '2026-01-02T03:05:00Z' }])
    t.equal(withStep(aNode({ annotations: written(over) }), end), undefined)
  t.equal(withStep(aNode(), end), undefined)
})
