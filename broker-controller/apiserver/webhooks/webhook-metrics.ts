/** Counters of webhooks, under the names of kube-apiserver. */
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'

type Labels = { readonly name: string; readonly type: string; readonly operation: string }

export interface WebhookMetrics {
  /** `code`: of the answer; 0 when there was none. */
  called(labels: Labels, result: { readonly rejected: boolean; readonly code: number; readonly tookMs: number }): void
  rejected(labels: Labels, errorType: 'no_error' | 'calling_webhook_error', code: number): void
  failedOpen(labels: Pick<Labels, 'name' | 'type'>): void
}

/** Registers them: once for a registry. */
export function webhookMetrics(registry: MetricsRegistry): WebhookMetrics {
  const total = registry.counter({
    name: 'apiserver_admission_webhook_request_total',
    help: 'Calls of admission webhooks, by name, type, operation, code and result.',
    labelNames: ['name', 'type', 'operation', 'code', 'rejected'],
  })
  const duration = registry.histogram({
    name: 'apiserver_admission_webhook_admission_duration_seconds',
    help: 'Time that calls of admission webhooks took.',
    labelNames: ['name', 'type', 'operation', 'rejected'],
    bounds: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25],
  })
  const rejections = registry.counter({
    name: 'apiserver_admission_webhook_rejection_count',
    help: 'Requests that admission webhooks refused, or that failed with them.',
    labelNames: ['name', 'type', 'operation', 'error_type', 'rejection_code'],
  })
  const open = registry.counter({
    name: 'apiserver_admission_webhook_fail_open_count',
    help: 'Failed calls of admission webhooks whose failurePolicy is Ignore.',
    labelNames: ['name', 'type'],
  })
  return {
    called(labels, { rejected, code, tookMs }) {
      total.inc({ ...labels, code, rejected: String(rejected) })
      duration.observe({ ...labels, rejected: String(rejected) }, tookMs / 1000)
    },
    rejected: (labels, errorType, code) => rejections.inc({ ...labels, error_type: errorType, rejection_code: code }),
    failedOpen: (labels) => open.inc(labels),
  }
}
