import { test } from 'tap'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { maintenanceMetrics } from './maintenance-metrics.ts'
import { usualMaintenance } from './maintenance-rules.ts'
import { nextMaintenance } from './next-maintenance.ts'
import { aMachine, aMaintained } from './testing/maintenance-nodes.ts'

test('the phase and the nodes of the maintenance are metrics while there is one', async (t) => {
  const registry = metricsRegistry()
  const metrics = maintenanceMetrics(registry)
  t.notMatch(registry.text(), /bramble_maintenance_phase\{/)
  const nodes = [aMaintained({ phase: 'Failed', reason: 'no space' }), aMachine({ name: 'pi-2' })]
  const { status } = nextMaintenance({}, { rules: usualMaintenance, nodes, nowMs: 0 })
  metrics.show({ status, isPausedByOperator: false })
  t.match(registry.text(), /bramble_maintenance_phase\{phase="Paused",by="failures"\} 1/)
  t.match(registry.text(), /bramble_maintenance_nodes\{state="security-updates"\} 2/)
  t.match(registry.text(), /bramble_maintenance_nodes\{state="failed"\} 1/)
  metrics.show({ status, isPausedByOperator: true })
  t.match(registry.text(), /by="operator"/)
  metrics.show(undefined)
  t.notMatch(registry.text(), /bramble_maintenance_nodes\{/)
})
