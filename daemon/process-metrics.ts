/** Metrics of this process and of Node.js in it, under the names that Prometheus clients use for them. */
import { readdirSync, readFileSync } from 'node:fs'
import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import type { MetricsRegistry } from './metrics-registry.ts'
import { counter, gauge, type MetricFamily, type MetricSample, one } from './prometheus-text.ts'

const kindsOfCollection: { readonly [kind: number]: string } = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
}

/** Adds them, and observes the event loop and garbage collections until the function it gives is called. */
export function addProcessMetrics(registry: MetricsRegistry): () => void {
  const delay = monitorEventLoopDelay()
  delay.enable()
  let lagSeconds: number | undefined
  const collections = registry.histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection duration by kind, one of major, minor, incremental or weakcb.',
    labelNames: ['kind'],
    bounds: [0.001, 0.01, 0.1, 1, 2, 5],
  })
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const detail: unknown = 'detail' in entry ? entry.detail : undefined
      const kind: unknown = typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : undefined
      collections.observe({ kind: kindsOfCollection[Number(kind)] ?? 'unknown' }, entry.duration / 1000)
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  registry.add(processFamilies)
  registry.add(() => {
    const beganMs = performance.now()
    setImmediate(() => {
      lagSeconds = (performance.now() - beganMs) / 1000
    })
    const families = delayFamilies(delay, lagSeconds)
    delay.reset()
    return families
  })
  registry.add(nodeFamilies)
  return () => {
    delay.disable()
    observer.disconnect()
  }
}

function processFamilies(): readonly MetricFamily[] {
  const { user, system } = process.cpuUsage()
  const status = textOf('/proc/self/status')
  const kibibytes = (field: string) => numberIn(status, RegExp(`^${field}:\\s+(\\d+) kB$`, 'm'), 1024)
  const descriptors = numberIn(textOf('/proc/self/limits'), /^Max open files\s+(\d+)/m)
  return [
    counter('process_cpu_user_seconds_total', 'Total user CPU time spent in seconds.', one(user / 1e6)),
    counter('process_cpu_system_seconds_total', 'Total system CPU time spent in seconds.', one(system / 1e6)),
    counter(
      'process_cpu_seconds_total',
      'Total user and system CPU time spent in seconds.',
      one((user + system) / 1e6),
    ),
    gauge('process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', one(startSeconds)),
    gauge('process_resident_memory_bytes', 'Resident memory size in bytes.', one(kibibytes('VmRSS'))),
    gauge('process_virtual_memory_bytes', 'Virtual memory size in bytes.', one(kibibytes('VmSize'))),
    gauge('process_heap_bytes', 'Process heap size in bytes.', one(kibibytes('VmData'))),
    gauge('process_open_fds', 'Number of open file descriptors.', one(openDescriptors())),
    gauge('process_max_fds', 'Maximum number of open file descriptors.', one(descriptors)),
  ]
}

function delayFamilies(
  delay: ReturnType<typeof monitorEventLoopDelay>,
  lagSeconds: number | undefined,
): readonly MetricFamily[] {
  const recorded = (name: string, help: string, nanoseconds: number) =>
    gauge(`nodejs_eventloop_lag_${name}_seconds`, help, one(delay.count === 0 ? undefined : nanoseconds / 1e9))
  return [
    gauge('nodejs_eventloop_lag_seconds', 'Lag of event loop in seconds.', one(lagSeconds ?? 0)),
    recorded('min', 'The minimum recorded event loop delay.', delay.min),
    recorded('max', 'The maximum recorded event loop delay.', delay.max),
    recorded('mean', 'The mean of the recorded event loop delays.', delay.mean),
    recorded('stddev', 'The standard deviation of the recorded event loop delays.', delay.stddev),
    recorded('p50', 'The 50th percentile of the recorded event loop delays.', delay.percentile(50)),
    recorded('p90', 'The 90th percentile of the recorded event loop delays.', delay.percentile(90)),
    recorded('p99', 'The 99th percentile of the recorded event loop delays.', delay.percentile(99)),
  ]
}

function nodeFamilies(): readonly MetricFamily[] {
  const { heapTotal, heapUsed, external } = process.memoryUsage()
  const [major = '', minor = '', patch = ''] = process.versions.node.split('.')
  const resources = process.getActiveResourcesInfo()
  const handles = inside('_getActiveHandles')
  const requests = inside('_getActiveRequests')
  const spaces = getHeapSpaceStatistics().map((space) => ({
    ...space,
    labels: { space: space.space_name.replace(/_space$/, '') },
  }))
  return [
    gauge(
      'nodejs_active_resources',
      'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
      countedByType(resources),
    ),
    gauge('nodejs_active_resources_total', 'Total number of active resources.', one(resources.length)),
    gauge(
      'nodejs_active_handles',
      'Number of active libuv handles grouped by handle type. Every handle type is C++ class name.',
      countedByType(handles),
    ),
    gauge('nodejs_active_handles_total', 'Total number of active handles.', one(handles.length)),
    gauge(
      'nodejs_active_requests',
      'Number of active libuv requests grouped by request type. Every request type is C++ class name.',
      countedByType(requests),
    ),
    gauge('nodejs_active_requests_total', 'Total number of active requests.', one(requests.length)),
    gauge('nodejs_heap_size_total_bytes', 'Process heap size from Node.js in bytes.', one(heapTotal)),
    gauge('nodejs_heap_size_used_bytes', 'Process heap size used from Node.js in bytes.', one(heapUsed)),
    gauge('nodejs_external_memory_bytes', 'Node.js external memory size in bytes.', one(external)),
    gauge(
      'nodejs_heap_space_size_total_bytes',
      'Process heap space size total from Node.js in bytes.',
      spaces.map(({ labels, space_size }) => ({ labels, value: space_size })),
    ),
    gauge(
      'nodejs_heap_space_size_used_bytes',
      'Process heap space size used from Node.js in bytes.',
      spaces.map(({ labels, space_used_size }) => ({ labels, value: space_used_size })),
    ),
    gauge(
      'nodejs_heap_space_size_available_bytes',
      'Process heap space size available from Node.js in bytes.',
      spaces.map(({ labels, space_available_size }) => ({ labels, value: space_available_size })),
    ),
    gauge('nodejs_version_info', 'Node.js version info.', one(1, { version: process.version, major, minor, patch })),
  ]
}

const startSeconds = Math.round(Date.now() / 1000 - process.uptime())

/** The types of active resources, by a function that Node.js deprecates (DEP0161); none where it was removed. */
function inside(name: '_getActiveHandles' | '_getActiveRequests'): readonly string[] {
  const list: unknown = Reflect.get(process, name)
  const found: unknown = typeof list === 'function' ? Reflect.apply(list, process, []) : []
  return Array.isArray(found) ? found.map((one: unknown) => one?.constructor?.name ?? 'Object') : []
}

function countedByType(types: readonly string[]): readonly MetricSample[] {
  const counts = new Map<string, number>()
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1)
  return [...counts].map(([type, value]) => ({ labels: { type }, value }))
}

function numberIn(text: string, pattern: RegExp, unit = 1): number | undefined {
  const digits = pattern.exec(text)?.[1]
  return digits === undefined ? undefined : Number(digits) * unit
}

/** Empty if it cannot be read. Files of /proc do not wait for a disk. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function openDescriptors(): number | undefined {
  try {
    // Less the one with which the folder is read.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return undefined
  }
}
