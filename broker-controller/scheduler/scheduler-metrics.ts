/** Metrics of the scheduler, under the names of kube-scheduler (pkg/scheduler/metrics/metrics.go). */
import { doublingBounds, type MetricsRegistry } from '../../daemon/metrics-registry.ts'
import type { QueueCounts } from './scheduling-queue.ts'

/** `unschedulable`: the pod fits nowhere, or room has to be made for it first. `error`: a write failed. */
export type AttemptResult = 'scheduled' | 'unschedulable' | 'error'

export interface SchedulerMetrics {
  /** `tookMs`: the decision and its write. */
  attempted(result: AttemptResult, tookMs: number): void
  /** The queue whose pods are counted from now on. */
  watch(counts: () => QueueCounts): void
}

/** The only profile. */
const profile = 'default-scheduler'
/** 1 ms to 16 s. */
const durationBounds = doublingBounds(0.001, 15)

/** Registers them: once for a registry. */
export function schedulerMetrics(registry: MetricsRegistry): SchedulerMetrics {
  const attempts = registry.counter({
    name: 'scheduler_schedule_attempts_total',
    help: 'Attempts to schedule pods, by result.',
    labelNames: ['profile', 'result'],
  })
  const duration = registry.histogram({
    name: 'scheduler_scheduling_attempt_duration_seconds',
    help: 'Time that attempts to schedule a pod took, with the write of its binding.',
    labelNames: ['profile', 'result'],
    bounds: durationBounds,
  })
  let counts = (): QueueCounts => ({ active: 0, backoff: 0, unschedulable: 0 })
  registry.add(() => [
    {
      name: 'scheduler_pending_pods',
      help: 'Pods that wait to be scheduled, by queue.',
      type: 'gauge',
      samples: Object.entries(counts()).map(([queue, value]) => ({ labels: { queue }, value })),
    },
  ])
  return {
    attempted(result, tookMs) {
      attempts.inc({ profile, result })
      duration.observe({ profile, result }, tookMs / 1000)
    },
    watch(next) {
      counts = next
    },
  }
}
