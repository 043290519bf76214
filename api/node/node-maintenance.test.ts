import { test } from 'tap'
import { aNode } from '../testing/builders.ts'
import { isMaintenanceCordon, maintenanceOf, wantedUpgradeOf } from './node-maintenance.ts'

const record = { id: '2026-01-02T03:00:00Z', phase: 'Upgrading', since: '2026-01-02T03:01:00Z' }
const maintained = (over: object) =>
  aNode({ annotations: { 'bramble.dev/maintenance': JSON.stringify({ ...record, ...over }) } })

test('a record is read, and one that is damaged or has an unsafe id counts as missing', async (t) => {
  t.same(maintenanceOf(maintained({})), record)
  t.equal(maintenanceOf(aNode()), undefined)
  for (const over of [{ id: '$(id)' }, { phase: 'Sleeping' }, { since: 5 }])
    t.equal(maintenanceOf(maintained(over)), undefined)
})

test('an upgrade is wanted in its phase only', async (t) => {
  t.same(wantedUpgradeOf(maintained({})), { id: '2026-01-02T03:00:00Z' })
  t.equal(wantedUpgradeOf(maintained({ phase: 'Rebooting' })), undefined)
  t.equal(wantedUpgradeOf(aNode()), undefined)
})

test('a cordon is one of the maintenance by its annotation', async (t) => {
  t.ok(isMaintenanceCordon(aNode({ annotations: { 'bramble.dev/cordoned-by': 'maintenance' } })))
  t.notOk(isMaintenanceCordon(aNode({ unschedulable: true })))
})
