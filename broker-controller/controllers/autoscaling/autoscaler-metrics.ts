/** Metrics of the autoscaler, under the names of kube-controller-manager (pkg/controller/podautoscaler/monitor/metrics.go). */
import { doublingBounds, type MetricsRegistry } from '../../../daemon/metrics-registry.ts'

export type ScalingAction = 'scale_up' | 'scale_down' | 'none'

export interface AutoscalerMetrics {
  /** A sync of one autoscaler. A failure counts also where the metrics that are left scaled the target. */
  reconciled(action: ScalingAction, hasFailed: boolean, tookMs: number): void
}

/** 1 ms to 16 s. */
const bounds = doublingBounds(0.001, 15)

/** Registers them: once for a registry. */
export function autoscalerMetrics(registry: MetricsRegistry): AutoscalerMetrics {
  const total = registry.counter({
    name: 'horizontal_pod_autoscaler_controller_reconciliations_total',
    help: 'Syncs of autoscalers, by what was done and whether it failed.',
    labelNames: ['action', 'error'],
  })
  const duration = registry.histogram({
    name: 'horizontal_pod_autoscaler_controller_reconciliation_duration_seconds',
    help: 'Time that syncs of autoscalers took, with the reading of metrics.',
    labelNames: ['action', 'error'],
    bounds,
  })
  return {
    reconciled(action, hasFailed, tookMs) {
      const labels = { action, error: hasFailed ? 'internal' : 'none' }
      total.inc(labels)
      duration.observe(labels, tookMs / 1000)
    },
  }
}
