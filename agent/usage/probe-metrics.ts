/** Counts of probes → figures under the kubelet's names (`/metrics/probes`). */
import { counter, type MetricFamily } from '../../daemon/prometheus-text.ts'

/** `agent/pods/probes/probe-counts.ts` */
export type ProbeFigures = {
  readonly kind: 'liveness' | 'readiness' | 'startup'
  readonly container: string
  readonly pod: string
  readonly namespace: string
  readonly podUID: string
  readonly results: { readonly success: number; readonly failure: number; readonly unknown: number }
  readonly within: readonly number[]
  readonly seconds: number
}

const kinds = { liveness: 'Liveness', readiness: 'Readiness', startup: 'Startup' } as const
const results = { success: 'successful', failure: 'failed', unknown: 'unknown' } as const

/** `buckets`: what each number in `within` counts, in seconds. */
export function* probeMetrics(probes: readonly ProbeFigures[], buckets: readonly number[]): Iterable<MetricFamily> {
  const labelsOf = ({ kind, container, pod, namespace }: ProbeFigures) => ({
    probe_type: kinds[kind],
    container,
    pod,
    namespace,
  })
  yield counter(
    'prober_probe_total',
    'Results of probes of containers.',
    probes.flatMap((probe) =>
      (['success', 'failure', 'unknown'] as const).flatMap((result) => {
        const value = probe.results[result]
        const labels = { ...labelsOf(probe), result: results[result], pod_uid: probe.podUID }
        return value === 0 ? [] : { labels, value }
      }),
    ),
  )
  yield {
    name: 'prober_probe_duration_seconds',
    help: 'Duration of successful probes.',
    type: 'histogram',
    samples: probes.flatMap((probe) => {
      const labels = labelsOf(probe)
      const count = probe.results.success
      if (count === 0) return []
      return [
        ...buckets.map((le, i) => ({
          suffix: '_bucket' as const,
          labels: { ...labels, le: String(le) },
          value: probe.within[i] ?? 0,
        })),
        { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: count } as const,
        { suffix: '_sum', labels, value: probe.seconds } as const,
        { suffix: '_count', labels, value: count } as const,
      ]
    }),
  }
}
