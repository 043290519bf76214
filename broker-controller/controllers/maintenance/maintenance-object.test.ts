import { test } from 'tap'
import { readMaintenanceStatus } from '../../../api/node/fleet-maintenance.ts'
import { failedMaintenance, maintenanceCommands, maintenanceData, readMaintenance } from './maintenance-object.ts'
import { usualMaintenance } from './maintenance-rules.ts'
import { nextMaintenance } from './next-maintenance.ts'

const data = maintenanceCommands.start(usualMaintenance)
const { status } = nextMaintenance({}, { rules: usualMaintenance, nodes: [], nowMs: 0 })

test('the rules and the state are read, and nothing without rules', async (t) => {
  t.equal(readMaintenance({}), undefined)
  t.equal(readMaintenance({ data: { state: '{}' } }), undefined)
  t.same(readMaintenance({ data }), { rules: usualMaintenance, state: {} })
  t.match(readMaintenance({ data: { rules: '{"window":' } }), /the field "rules" cannot be used/)
  t.match(readMaintenance({ data: { ...data, state: '{"paused":1}' } }), { state: {} })
})

test('what the controller writes is read again', async (t) => {
  const written = { ...data, ...maintenanceData({ data }, { paused: 'pi-1 failed', resumedMs: 5 }, status) }
  t.match(readMaintenance({ data: written }), { state: { paused: 'pi-1 failed', resumedMs: 5 } })
  t.same(readMaintenanceStatus({ data: written }), status)
  t.equal(readMaintenanceStatus({ data }), undefined)
  t.equal(failedMaintenance({ data: written }), 'pi-1 failed')
})

test('a pause of an operator is not made one of the controller, and a resume ends both', async (t) => {
  const paused = { ...data, ...maintenanceCommands.pause('by an operator') }
  t.match(readMaintenance({ data: paused }), { state: { paused: 'by an operator' } })
  t.equal(failedMaintenance({ data: paused }), undefined)
  t.notMatch(maintenanceData({ data: paused }, { paused: 'by an operator' }, status)['state'], /operator/)
  const { resumedAt } = maintenanceCommands.resume('2026-01-01T00:00:00Z')
  const failed = { ...data, ...maintenanceData({ data }, { paused: 'pi-1 failed' }, status), resumedAt }
  const resumed = { resumedMs: 99, resumedAt }
  t.same(readMaintenance({ data: failed }, 99), { rules: usualMaintenance, state: resumed })
  const again = { ...failed, ...maintenanceData({ data: failed }, { paused: 'pi-2 failed', ...resumed }, status) }
  t.match(readMaintenance({ data: again }), { state: { paused: 'pi-2 failed' } }, 'a resume is for what was before it')
})
