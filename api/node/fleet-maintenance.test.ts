import { test } from 'tap'
import {
  isMaintenanceMap,
  isMaintenancePausedByOperator,
  maintenanceKey,
  maintenancePauses,
  readMaintenanceStatus,
} from './fleet-maintenance.ts'

test('the maintenance is one ConfigMap of the system', async (t) => {
  t.same(maintenanceKey, { namespace: 'kube-system', name: 'bramble-maintenance' })
  t.ok(isMaintenanceMap({ metadata: maintenanceKey }))
  t.notOk(isMaintenanceMap({ metadata: { ...maintenanceKey, namespace: 'default' } }))
  t.notOk(isMaintenanceMap({ metadata: { ...maintenanceKey, name: 'other' } }))
})

test('a status that is damaged counts as missing', async (t) => {
  for (const status of ['', '{}', '[]', '{"phase":"Idle"}'])
    t.equal(readMaintenanceStatus({ data: { status } }), undefined)
  t.equal(readMaintenanceStatus({}), undefined)
})

test('an operator pauses and resumes by keys of its own', async (t) => {
  t.ok(isMaintenancePausedByOperator({ data: maintenancePauses.pause('why') }))
  t.notOk(isMaintenancePausedByOperator({}))
  t.same(maintenancePauses.resume('now'), { pause: null, resumedAt: 'now' })
})
