import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { type MetricsRegistry, metricsRegistry } from './metrics-registry.ts'
import { addProcessMetrics } from './process-metrics.ts'
import { readMetrics } from './testing/prometheus-parser.ts'

/** What prom-client 15.1.3 writes by default. Dashboards use these names. */
const names = `process_cpu_user_seconds_total counter
process_cpu_system_seconds_total counter
process_cpu_seconds_total counter
process_start_time_seconds gauge
process_resident_memory_bytes gauge
process_virtual_memory_bytes gauge
process_heap_bytes gauge
process_open_fds gauge
process_max_fds gauge
nodejs_eventloop_lag_seconds gauge
nodejs_eventloop_lag_min_seconds gauge
nodejs_eventloop_lag_max_seconds gauge
nodejs_eventloop_lag_mean_seconds gauge
nodejs_eventloop_lag_stddev_seconds gauge
nodejs_eventloop_lag_p50_seconds gauge
nodejs_eventloop_lag_p90_seconds gauge
nodejs_eventloop_lag_p99_seconds gauge
nodejs_active_resources gauge
nodejs_active_resources_total gauge
nodejs_active_handles gauge
nodejs_active_handles_total gauge
nodejs_active_requests_total gauge
nodejs_heap_size_total_bytes gauge
nodejs_heap_size_used_bytes gauge
nodejs_external_memory_bytes gauge
nodejs_heap_space_size_total_bytes gauge
nodejs_heap_space_size_used_bytes gauge
nodejs_heap_space_size_available_bytes gauge
nodejs_version_info gauge
nodejs_gc_duration_seconds histogram`

test('process and Node.js have the names that Prometheus clients give them', async (t) => {
  const registry = metricsRegistry()
  t.teardown(addProcessMetrics(registry))
  let garbage: unknown[] = []
  while (registry.samplesOf('nodejs_gc_duration_seconds').length === 0) {
    garbage = Array.from({ length: 100_000 }, (_, i) => ({ i }))
    await sleep(20)
  }
  t.ok(garbage.length > 0)
  const found = await withDelays(registry)
  const types = names.split('\n').map((line) => line.split(' '))
  t.same(
    types
      .filter(([name = '', type]) => found.get(name)?.type !== type)
      .filter(([name]) => name !== 'nodejs_active_handles'),
    [],
    'handles may be missing',
  )
  const known = types.map(([name]) => name)
  t.same(
    [...found.keys()].filter((name) => !known.includes(name) && name !== 'nodejs_active_requests'),
    [],
  )
  const one = (name: string) => found.get(name)?.samples[0]?.value ?? Number.NaN
  t.ok(one('process_resident_memory_bytes') > 20e6 && one('process_resident_memory_bytes') < 8e9)
  t.ok(one('process_cpu_seconds_total') > 0 && one('process_open_fds') > 2 && one('process_max_fds') > 100)
  t.ok(Math.abs(one('process_start_time_seconds') - performance.timeOrigin / 1000) < 60)
  t.match(found.get('nodejs_version_info')?.samples[0]?.labels, { version: process.version })
  t.ok(one('nodejs_eventloop_lag_max_seconds') >= one('nodejs_eventloop_lag_min_seconds'))
})

/** Each reading begins the delays of the event loop again: one after a time in which the machine stood still has none. */
async function withDelays(registry: MetricsRegistry): Promise<ReturnType<typeof readMetrics>> {
  for (;;) {
    await sleep(200)
    const found = readMetrics(registry.text())
    if (found.has('nodejs_eventloop_lag_max_seconds')) return found
  }
}
