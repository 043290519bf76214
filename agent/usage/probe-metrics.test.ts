import { test } from 'tap'
import { metricsText } from '../../daemon/prometheus-text.ts'
import { type ProbeFigures, probeMetrics } from './probe-metrics.ts'

const probe: ProbeFigures = {
  kind: 'readiness',
  container: 'main',
  pod: 'web',
  namespace: 'default',
  podUID: 'uid-web',
  results: { success: 3, failure: 1, unknown: 0 },
  within: [1, 2],
  seconds: 0.5,
}

test('probes are counted by result, and those that succeeded by duration', async (t) => {
  const lines = [...metricsText(probeMetrics([probe], [0.1, 0.25]))].join('').split('\n')
  const labels = 'probe_type="Readiness",container="main",pod="web",namespace="default"'
  t.same(
    lines.filter((line) => !line.startsWith('#')),
    [
      `prober_probe_total{${labels},result="successful",pod_uid="uid-web"} 3`,
      `prober_probe_total{${labels},result="failed",pod_uid="uid-web"} 1`,
      `prober_probe_duration_seconds_bucket{${labels},le="0.1"} 1`,
      `prober_probe_duration_seconds_bucket{${labels},le="0.25"} 2`,
      `prober_probe_duration_seconds_bucket{${labels},le="+Inf"} 3`,
      `prober_probe_duration_seconds_sum{${labels}} 0.5`,
      `prober_probe_duration_seconds_count{${labels}} 3`,
      '',
    ],
  )
})

test('a probe that has no result has no figures', async (t) => {
  const none = { ...probe, results: { success: 0, failure: 0, unknown: 0 } }
  t.same([...metricsText(probeMetrics([none], [0.1]))], [])
})
