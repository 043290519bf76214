/**
 * What Prometheus scrapes in this fleet, in the form of its HTTP service discovery (https://prometheus.io/docs/prometheus/latest/http_sd):
 * the controller, and each node through `nodes/proxy`. The labels `job`, `metrics_path`, `node` and `instance` have the values that
 * the boards and rules of kubernetes-mixin and node_exporter select.
 */
export type TargetGroup = {
  readonly targets: readonly string[]
  readonly labels: { readonly [name: string]: string }
}

type NodeTarget = {
  readonly job: string
  readonly path: string
  /** What changes slowly is read more rarely: each scrape is a connection of the node. */
  readonly interval?: string
  /** Which of the agent's metrics: node_exporter and the kubelet serve them separately. */
  readonly part?: 'machine' | 'agent'
}

const nodeTargets: readonly NodeTarget[] = [
  { job: 'node-exporter', path: '/metrics', part: 'machine' },
  { job: 'kubelet', path: '/metrics/cadvisor' },
  { job: 'kubelet', path: '/metrics', part: 'agent', interval: '60s' },
  { job: 'kubelet', path: '/metrics/probes', interval: '60s' },
]

const controllerTargets = [
  { job: 'apiserver', path: '/metrics' },
  { job: 'kube-state-metrics', path: '/metrics/fleet' },
] as const

/** `address`: `HOST:PORT` of the API. `jobs`: those that are wanted; empty: all. */
export function* targetGroups(
  nodes: Iterable<{ readonly metadata: { readonly name: string } }>,
  address: string,
  jobs: readonly string[] = [],
): Iterable<TargetGroup> {
  const isWanted = ({ job }: { readonly job: string }) => jobs.length === 0 || jobs.includes(job)
  for (const { job, path } of controllerTargets.filter(isWanted)) {
    yield { targets: [address], labels: { job, metrics_path: path, __metrics_path__: path } }
  }
  const wanted = nodeTargets.filter(isWanted)
  for (const { metadata } of nodes) for (const target of wanted) yield nodeGroup(metadata.name, target, address)
}

function nodeGroup(node: string, { job, path, interval, part }: NodeTarget, address: string): TargetGroup {
  return {
    targets: [address],
    labels: {
      job,
      node,
      instance: node,
      metrics_path: path,
      __metrics_path__: `/api/v1/nodes/${node}/proxy${path}`,
      ...(part !== undefined && { __param_part: part }),
      ...(interval !== undefined && { __scrape_interval__: interval }),
    },
  }
}

/**
 * `HOST:PORT` as the client wrote it in its request: that is how it reaches this API. Undefined if it is neither a name nor an
 * address.
 */
export function scrapeAddress(host: string | undefined): string | undefined {
  const [, name, port = '443'] =
    /^([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::(\d{1,5}))?$/.exec(host ?? '') ?? []
  return name === undefined ? undefined : `${name}:${port}`
}
