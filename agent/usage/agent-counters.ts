/** Counts of what the agent did since it started, with the kubelet's names (pkg/kubelet/metrics/metrics.go). */
import { metricsRegistry } from '../../daemon/metrics-registry.ts'

export interface AgentCounters {
  /** `signal`: of the threshold, such as `memory.available`. */
  evicted(signal: string): void
  /** All containers of a pod run, this long after the agent first saw it. */
  podStarted(seconds: number): void
  /** A new certificate of the node was not obtained. */
  renewalFailed(): void
  /** As text for Prometheus. */
  text(): string
}

/** podStartupDurationBuckets of the kubelet. */
const startBounds = [
  ...[0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360],
  ...[480, 600, 900, 1200, 1800, 2700, 3600],
]

export function agentCounters(): AgentCounters {
  const registry = metricsRegistry()
  const evictions = registry.counter({
    name: 'kubelet_evictions',
    help: 'Pods evicted, by the signal of the threshold.',
    labelNames: ['eviction_signal'],
  })
  const starts = registry.histogram({
    name: 'kubelet_pod_start_duration_seconds',
    help: 'Time from the first sight of a pod until it runs.',
    labelNames: [],
    bounds: startBounds,
  })
  const failures = registry.counter({
    name: 'kubelet_certificate_manager_client_expiration_renew_errors',
    help: "Failed renewals of the node's certificate.",
  })
  return {
    evicted: (signal) => evictions.inc({ eviction_signal: signal }),
    podStarted: (seconds) => starts.observe({}, seconds),
    renewalFailed: () => failures.inc(),
    text: registry.text,
  }
}
