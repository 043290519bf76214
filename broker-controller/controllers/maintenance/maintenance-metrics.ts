/** Metrics of the maintenance of machines, as the controller that leads decides it. */
import type { MaintenanceStatus } from '../../../api/node/fleet-maintenance.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { gauge, type MetricSample } from '../../../daemon/prometheus-text.ts'

export type ShownMaintenance = { readonly status: MaintenanceStatus; readonly isPausedByOperator: boolean }

export interface MaintenanceMetrics {
  /** Undefined: none was started. */
  show(maintenance: ShownMaintenance | undefined): void
}

/** Registers them: once for a registry. */
export function maintenanceMetrics(registry: MetricsRegistry): MaintenanceMetrics {
  let shown: ShownMaintenance | undefined
  registry.add(() => [
    gauge('bramble_maintenance_phase', '1 for the phase that the maintenance of machines is in', phasesOf(shown)),
    gauge('bramble_maintenance_nodes', 'Nodes by what they wait for in the maintenance of machines', nodesOf(shown)),
  ])
  return {
    show(maintenance) {
      shown = maintenance
    },
  }
}

function phasesOf(shown: ShownMaintenance | undefined): readonly MetricSample[] {
  if (shown === undefined) return []
  const { phase } = shown.status
  const by = phase === 'Paused' ? (shown.isPausedByOperator ? 'operator' : 'failures') : undefined
  return [{ labels: { phase, by }, value: 1 }]
}

function nodesOf(shown: ShownMaintenance | undefined): readonly MetricSample[] {
  if (shown === undefined) return []
  const { nodes: _, securityUpdates, rebootRequired, ...counts } = shown.status.counts
  return Object.entries({ 'security-updates': securityUpdates, 'reboot-required': rebootRequired, ...counts }).map(
    ([state, value]) => ({ labels: { state }, value }),
  )
}
