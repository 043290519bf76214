import { test } from 'tap'
import { readMetrics } from '../../daemon/testing/prometheus-parser.ts'
import { agentCounters } from './agent-counters.ts'

test('evictions are counted by their signal', async (t) => {
  const counters = agentCounters()
  counters.evicted('memory.available')
  counters.evicted('memory.available')
  counters.evicted('nodefs.available')
  t.same(readMetrics(counters.text()).get('kubelet_evictions')?.samples, [
    { labels: { eviction_signal: 'memory.available' }, value: 2 },
    { labels: { eviction_signal: 'nodefs.available' }, value: 1 },
  ])
})

test('the time in which pods start is a histogram in the buckets of the kubelet', async (t) => {
  const counters = agentCounters()
  counters.podStarted(2.5)
  counters.podStarted(7200)
  const text = counters.text()
  t.match(text, /kubelet_pod_start_duration_seconds_bucket\{le="2"\} 0\n/)
  t.match(text, /kubelet_pod_start_duration_seconds_bucket\{le="3"\} 1\n/)
  t.match(text, /kubelet_pod_start_duration_seconds_bucket\{le="3600"\} 1\n/)
  t.match(text, /kubelet_pod_start_duration_seconds_bucket\{le="\+Inf"\} 2\n/)
})

test('failed renewals of the certificate are counted from 0 on', async (t) => {
  const counters = agentCounters()
  const failed = () =>
    readMetrics(counters.text()).get('kubelet_certificate_manager_client_expiration_renew_errors')?.samples[0]?.value
  t.equal(failed(), 0)
  counters.renewalFailed()
  t.equal(failed(), 1)
})
