/** Readings → figures under the kubelet's and cAdvisor's names, as dashboards ask for them. */
import { counter, gauge, type MetricFamily, type MetricSample, one } from '../../daemon/prometheus-text.ts'
import type {
  ContainerReading,
  CpuLimitReading,
  GroupReading,
  InterfaceReading,
  IoReading,
  NodeReading,
  PodDiskReading,
  PodReading,
} from './usage.ts'

export type PodFigures = {
  readonly node: NodeReading
  readonly pods: readonly PodReading[]
  readonly cpus: number
  readonly memoryBytes: number
  readonly wallMs: number
  /** What pods have on disk; undefined if it was not counted in time. */
  readonly disks?: readonly PodDiskReading[] | undefined
}

type Row = GroupReading & {
  readonly labels: { readonly [name: string]: string }
  readonly startedAt?: string | undefined
  readonly io?: readonly IoReading[]
  readonly cpuLimit?: CpuLimitReading
}

/** `/metrics/cadvisor`: one row for the machine (`id="/"`), one for each container that runs. */
export function* cadvisorMetrics({
  node,
  pods,
  cpus,
  memoryBytes,
  wallMs,
  disks = [],
}: PodFigures): Iterable<MetricFamily> {
  const machine = { id: '/', image: '', name: '', namespace: '', pod: '', container: '' }
  const rows: Row[] = [
    { labels: machine, ...(node.cpu && { cpu: node.cpu }), ...(node.memory && { memory: node.memory }) },
    ...pods.flatMap((pod) => pod.containers.map((container) => rowOf(pod, container))),
  ]
  const each = (value: (row: Row) => number | undefined, more: { readonly [name: string]: string } = {}) =>
    rows.flatMap((row) => one(value(row), { ...row.labels, ...more }))
  const contained = rows.slice(1)
  const inside = (value: (row: Row) => number | undefined) => contained.flatMap((row) => one(value(row), row.labels))

  yield gauge('machine_cpu_cores', 'Processors of the machine.', one(cpus))
  yield gauge('machine_memory_bytes', 'Memory of the machine.', one(memoryBytes))
  yield counter(
    'container_cpu_usage_seconds_total',
    'CPU time used.',
    each(({ cpu }) => seconds(cpu?.usageNanoSeconds), { cpu: 'total' }),
  )
  yield counter(
    'container_cpu_cfs_periods_total',
    'Periods of the CPU limit.',
    inside(({ cpu }) => cpu?.periods),
  )
  yield counter(
    'container_cpu_cfs_throttled_periods_total',
    'Periods in which the CPU limit held it back.',
    inside(({ cpu }) => cpu?.throttledPeriods),
  )
  yield counter(
    'container_cpu_cfs_throttled_seconds_total',
    'Time for which the CPU limit held it back.',
    inside(({ cpu }) => seconds(cpu?.throttledNanoSeconds)),
  )
  yield gauge(
    'container_memory_usage_bytes',
    'Memory used, with all its caches.',
    each(({ memory }) => memory?.usageBytes),
  )
  yield gauge(
    'container_memory_working_set_bytes',
    'Memory used, without what can be dropped at once.',
    each(({ memory }) => memory?.workingSetBytes),
  )
  yield gauge(
    'container_memory_rss',
    'Anonymous memory.',
    each(({ memory }) => memory?.rssBytes),
  )
  yield gauge(
    'container_memory_cache',
    'Memory that holds files.',
    each(({ memory }) => memory?.cacheBytes),
  )
  yield gauge(
    'container_memory_swap',
    'Memory moved to the disk.',
    each(({ memory }) => memory?.swapBytes),
  )
  yield counter('container_memory_failures_total', 'Page faults.', [
    ...each(({ memory }) => memory?.pageFaults, { failure_type: 'pgfault', scope: 'hierarchy' }),
    ...each(({ memory }) => memory?.majorPageFaults, { failure_type: 'pgmajfault', scope: 'hierarchy' }),
  ])
  yield counter(
    'container_oom_events_total',
    'Processes the kernel ended for want of memory.',
    inside(({ memory }) => memory?.oomKills),
  )
  yield gauge(
    'container_spec_memory_limit_bytes',
    'Memory limit; 0: none.',
    inside(({ memory }) => memory && (memory.limitBytes ?? 0)),
  )
  yield gauge(
    'container_processes',
    'Processes and threads.',
    inside(({ pids }) => pids?.current),
  )
  yield gauge(
    'container_start_time_seconds',
    'When it started.',
    inside(({ startedAt }) => instant(startedAt)),
  )
  yield gauge(
    'container_last_seen',
    'When it was last seen.',
    inside(() => wallMs / 1000),
  )
  yield* limitMetrics(contained)
  yield* fileMetrics(contained, node, pods, disks)
  yield* networkMetrics(node, pods)
}

function* limitMetrics(rows: readonly Row[]): Iterable<MetricFamily> {
  const each = (value: (limit: CpuLimitReading) => number | undefined) =>
    rows.flatMap(({ cpuLimit, labels }) => one(cpuLimit && value(cpuLimit), labels))
  yield gauge(
    'container_spec_cpu_period',
    'Period of the CPU limit in microseconds.',
    each(({ periodMicros }) => periodMicros),
  )
  yield gauge(
    'container_spec_cpu_quota',
    'CPU time of each period in microseconds.',
    each(({ quotaMicros }) => quotaMicros),
  )
  yield gauge(
    'container_spec_cpu_shares',
    'Share of the processors; 1024 for one requested.',
    each(({ shares }) => shares),
  )
}

/** The size is that of the writable layer and the logs, as with cAdvisor. */
function* fileMetrics(
  rows: readonly Row[],
  { imageFs, fs }: NodeReading,
  pods: readonly PodReading[],
  disks: readonly PodDiskReading[],
): Iterable<MetricFamily> {
  const each = (value: (reading: IoReading) => number): MetricSample[] =>
    rows.flatMap(({ io = [], labels }) =>
      io.map((reading) => ({ labels: { ...labels, device: reading.device }, value: value(reading) })),
    )
  yield counter(
    'container_fs_reads_total',
    'Reads completed.',
    each(({ reads }) => reads),
  )
  yield counter(
    'container_fs_reads_bytes_total',
    'Bytes read.',
    each(({ readBytes }) => readBytes),
  )
  yield counter(
    'container_fs_writes_total',
    'Writes completed.',
    each(({ writes }) => writes),
  )
  yield counter(
    'container_fs_writes_bytes_total',
    'Bytes written.',
    each(({ writtenBytes }) => writtenBytes),
  )
  const used = new Map(
    disks.flatMap(({ uid, containers }) =>
      containers.flatMap(({ name, rootfs, logs }): [string, number][] =>
        rootfs === undefined ? [] : [[`${uid}/${name}`, rootfs.usedBytes + (logs?.usedBytes ?? 0)]],
      ),
    ),
  )
  const counted = pods.flatMap((pod) =>
    pod.containers.map((container) => ({
      labels: rowOf(pod, container).labels,
      usedBytes: used.get(`${pod.uid}/${container.name}`),
    })),
  )
  yield gauge(
    'container_fs_usage_bytes',
    'Writable layer and logs.',
    counted.flatMap(({ labels, usedBytes }) => one(usedBytes, labels)),
  )
  const limitBytes = (imageFs ?? fs)?.capacityBytes
  yield gauge(
    'container_fs_limit_bytes',
    'Size of the filesystem.',
    counted.flatMap(({ labels, usedBytes }) => one(usedBytes === undefined ? undefined : limitBytes, labels)),
  )
}

function* networkMetrics(node: NodeReading, pods: readonly PodReading[]): Iterable<MetricFamily> {
  const ends = [
    { labels: { id: '/', namespace: '', pod: '' }, interfaces: node.network.filter(({ name }) => !isOfPod(name)) },
    ...pods.map(({ uid, namespace, name, network }) => ({
      labels: { id: `/pod${uid}`, namespace, pod: name },
      interfaces: network ?? [],
    })),
  ]
  const each = (value: (one: InterfaceReading) => number): MetricSample[] =>
    ends.flatMap(({ labels, interfaces }) =>
      interfaces.map((one) => ({ labels: { ...labels, interface: one.name }, value: value(one) })),
    )
  const name = (way: string, what: string) => `container_network_${way}_${what}_total`
  yield counter(
    name('receive', 'bytes'),
    'Bytes received.',
    each(({ rxBytes }) => rxBytes),
  )
  yield counter(
    name('receive', 'packets'),
    'Packets received.',
    each(({ rxPackets }) => rxPackets),
  )
  yield counter(
    name('receive', 'packets_dropped'),
    'Packets dropped on receipt.',
    each(({ rxDropped }) => rxDropped),
  )
  yield counter(
    name('receive', 'errors'),
    'Errors on receipt.',
    each(({ rxErrors }) => rxErrors),
  )
  yield counter(
    name('transmit', 'bytes'),
    'Bytes sent.',
    each(({ txBytes }) => txBytes),
  )
  yield counter(
    name('transmit', 'packets'),
    'Packets sent.',
    each(({ txPackets }) => txPackets),
  )
  yield counter(
    name('transmit', 'packets_dropped'),
    'Packets dropped when sent.',
    each(({ txDropped }) => txDropped),
  )
  yield counter(
    name('transmit', 'errors'),
    'Errors when sent.',
    each(({ txErrors }) => txErrors),
  )
}

/** `/metrics/resource`: what metrics-server reads. */
export function* resourceMetrics({ node, pods }: PodFigures): Iterable<MetricFamily> {
  const containers = pods.flatMap(({ namespace, name, containers: own }) =>
    own.map((reading) => ({ reading, labels: { container: reading.name, namespace, pod: name } })),
  )
  const wholes = pods.map((pod) => ({
    labels: { namespace: pod.namespace, pod: pod.name },
    groups: [...pod.containers, ...(pod.sandbox === undefined ? [] : [pod.sandbox])],
  }))
  const inside = (value: (reading: ContainerReading) => number | undefined) =>
    containers.flatMap(({ reading, labels }) => one(value(reading), labels))
  const whole = (value: (reading: GroupReading) => number | undefined) =>
    wholes.flatMap(({ labels, groups }) => {
      const values = groups.flatMap((group) => value(group) ?? [])
      return values.length === 0 ? [] : [{ labels, value: values.reduce((sum, one) => sum + one, 0) }]
    })
  const cpu = (reading: GroupReading) => seconds(reading.cpu?.usageNanoSeconds)
  const memory = (reading: GroupReading) => reading.memory?.workingSetBytes
  yield counter('node_cpu_usage_seconds_total', 'CPU time the machine used.', one(seconds(node.cpu?.usageNanoSeconds)))
  yield gauge('node_memory_working_set_bytes', 'Memory the machine uses.', one(node.memory?.workingSetBytes))
  yield gauge('node_swap_usage_bytes', 'Swap the machine uses.', one(node.swap?.usedBytes))
  yield counter('container_cpu_usage_seconds_total', 'CPU time used.', inside(cpu))
  yield gauge('container_memory_working_set_bytes', 'Memory used.', inside(memory))
  yield gauge(
    'container_swap_usage_bytes',
    'Swap used.',
    inside(({ memory: one }) => one?.swapBytes),
  )
  yield gauge(
    'container_start_time_seconds',
    'When it started.',
    inside(({ startedAt }) => instant(startedAt)),
  )
  yield counter('pod_cpu_usage_seconds_total', 'CPU time used.', whole(cpu))
  yield gauge('pod_memory_working_set_bytes', 'Memory used.', whole(memory))
  yield gauge('resource_scrape_error', '1: something could not be read.', one(0))
}

export type AgentFigures = {
  readonly nodeName: string
  readonly pods: readonly PodReading[]
  /** How many are in which state. */
  readonly containers: ReadonlyMap<string, number>
  readonly node: NodeReading
  readonly startedMs: number
  readonly certificateTtlSeconds: number
}

/** The metrics of the agent itself on `/metrics`. */
export function* agentMetrics(figures: AgentFigures): Iterable<MetricFamily> {
  const { nodeName, pods, containers, node, startedMs, certificateTtlSeconds } = figures
  yield gauge('kubelet_node_name', 'The node.', one(1, { node: nodeName }))
  yield gauge('kubelet_running_pods', 'Pods of which something runs.', one(pods.length))
  yield gauge(
    'kubelet_running_containers',
    'Containers, by their state.',
    [...containers].map(([state, value]) => ({ labels: { container_state: state }, value })),
  )
  yield gauge(
    'kubelet_certificate_manager_client_ttl_seconds',
    "Time to the end of the node's certificate; negative if it has expired.",
    one(certificateTtlSeconds),
  )
  yield counter('process_cpu_seconds_total', 'CPU time of the agent.', one(node.agent.cpuNanoSeconds / 1e9))
  yield gauge('process_resident_memory_bytes', 'Memory of the agent.', one(node.agent.rssBytes))
  yield gauge('process_start_time_seconds', 'When the agent started.', one(startedMs / 1000))
}

function rowOf({ namespace, name: pod }: PodReading, { id, name, image, ...reading }: ContainerReading): Row {
  return { ...reading, labels: { id: `/${id}`, image, name: id, namespace, pod, container: name } }
}

/** The machine's end of a pod's network comes and goes with the pod. */
export function isOfPod(name: string): boolean {
  return name.startsWith('veth')
}

function seconds(nanoSeconds: number | undefined): number | undefined {
  return nanoSeconds === undefined ? undefined : nanoSeconds / 1e9
}

function instant(time: string | undefined): number | undefined {
  const ms = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isFinite(ms) ? ms / 1000 : undefined
}
