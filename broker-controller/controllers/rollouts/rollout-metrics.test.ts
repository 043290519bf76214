import { test } from 'tap'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { rolloutMetrics, type ShownRollout } from './rollout-metrics.ts'

const ring = { name: 'canary', nodes: 10, committed: 3, failed: 1, updating: 2 }
const paused: ShownRollout = {
  version: '1.5.0',
  status: { phase: 'Paused', rings: [ring] },
  isPausedByOperator: false,
}

test('the phase, the reason of a pause, and the nodes of each ring are shown while there is a rollout', async (t) => {
  const registry = metricsRegistry()
  const metrics = rolloutMetrics(registry)
  t.notMatch(registry.text(), /bramble_rollout/)
  metrics.show(paused)
  t.match(registry.text(), 'bramble_rollout_phase{version="1.5.0",phase="Paused",by="failures"} 1')
  t.match(registry.text(), 'bramble_rollout_nodes{version="1.5.0",ring="canary",state="others"} 4')
  metrics.show({ ...paused, isPausedByOperator: true })
  t.match(registry.text(), /by="operator"/)
  metrics.show({ ...paused, status: { phase: 'Soaking', rings: [ring] } })
  t.match(registry.text(), 'bramble_rollout_phase{version="1.5.0",phase="Soaking"} 1')
  metrics.show(undefined)
  t.notMatch(registry.text(), /bramble_rollout/)
})
