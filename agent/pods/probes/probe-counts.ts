/** How often each probe gave which result, and how long it took (pkg/kubelet/prober/prober_manager.go, ProberResults). */
import type { ProbeKind, ProbeResult } from './probe-worker.ts'

/** Seconds: the buckets of prober_probe_duration_seconds, as of any histogram of Prometheus' libraries. */
export const probeDurationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

export type ProbeCounts = {
  readonly results: { readonly [R in ProbeResult]: number }
  /** Counts of successful probes: those within each bucket's duration, then all of them. */
  readonly within: readonly number[]
  readonly seconds: number
}

/** Counts of one probe of one container. */
export type CountedProbe = ProbeCounts & {
  readonly kind: ProbeKind
  readonly container: string
  readonly pod: string
  readonly namespace: string
  readonly podUID: string
}

export const nothingProbed: ProbeCounts = {
  results: { success: 0, failure: 0, unknown: 0 },
  within: probeDurationBuckets.map(() => 0),
  seconds: 0,
}

/** The counts with one more probe. */
export function countProbe(counts: ProbeCounts, result: ProbeResult, tookMs: number): ProbeCounts {
  const results = { ...counts.results, [result]: counts.results[result] + 1 }
  if (result !== 'success') return { ...counts, results }
  const seconds = tookMs / 1000
  const within = counts.within.map((count, i) => count + (seconds <= (probeDurationBuckets[i] ?? 0) ? 1 : 0))
  return { results, within, seconds: counts.seconds + seconds }
}
