/** The text for Prometheus at each of the agent's three paths. Values are read at each scrape only. */
import type { Clock } from '../../daemon/clock.ts'
import { withinOr } from '../../daemon/deadline.ts'
import { type MetricFamily, metricsText } from '../../daemon/prometheus-text.ts'
import type { RuntimeContainer } from '../runtime/runtime.ts'
import { agentMetrics, cadvisorMetrics, resourceMetrics } from './pod-metrics.ts'
import { type ProbeFigures, probeMetrics } from './probe-metrics.ts'
import type { NodeUsage, PodUsage } from './usage.ts'
import { type VolumeFigures, volumeMetrics } from './volume-metrics.ts'

export type ScrapeNeeds = {
  readonly pods: Pick<PodUsage, 'podReadings' | 'podDiskUsage'>
  readonly node: NodeUsage
  readonly containers: () => Promise<readonly RuntimeContainer[]>
  /** The machine under node_exporter's names. */
  readonly machine: () => Promise<readonly MetricFamily[]>
  /** Counts of the probes of all pods, and the seconds that their buckets stand for. */
  readonly probes: () => { readonly counts: readonly ProbeFigures[]; readonly buckets: readonly number[] }
  /** As they were measured last. */
  readonly volumes: () => VolumeFigures
  /** Counts of the agent itself, as text for Prometheus. */
  readonly counts: () => string
  /** To the end of the node's certificate; infinite if it cannot be read, as with the kubelet. */
  readonly certificateTtlSeconds: () => number
  readonly clock: Clock
}

export type ScrapeFacts = { readonly nodeName: string; readonly cpus: number; readonly memoryBytes: number }

export interface Scrapes {
  /** `machine`: under node_exporter's names; `agent`: under the kubelet's; without: both. */
  metrics(part?: 'machine' | 'agent'): Promise<string>
  cadvisor(): Promise<string>
  resource(): Promise<string>
  probes(): Promise<string>
}

/** A scrape waits no longer for the size of what containers wrote, and is answered without it. */
const diskTimeoutMs = 2_000

export function scrapes(needs: ScrapeNeeds, facts: ScrapeFacts): Scrapes {
  const { pods, node, containers, machine, probes, counts, clock } = needs
  const startedMs = clock.wallMs()
  const { nodeName, cpus, memoryBytes } = facts
  const readFigures = async (whole = false) => {
    const [readings, nodeReading] = await Promise.all([pods.podReadings(whole), node.nodeReading()])
    return { pods: readings, node: nodeReading, cpus, memoryBytes, wallMs: clock.wallMs() }
  }
  return {
    async metrics(part) {
      if (part === 'machine') return text(await machine())
      const [found, all, families] = await Promise.all([readFigures(), containers(), part === 'agent' ? [] : machine()])
      const inside = all.filter(({ identity }) => identity.kind === 'container')
      const states = new Map([['running', 0]])
      for (const { state } of inside) states.set(state, (states.get(state) ?? 0) + 1)
      const certificateTtlSeconds = needs.certificateTtlSeconds()
      const figures = { ...found, nodeName, containers: states, startedMs, certificateTtlSeconds }
      return text([...agentMetrics(figures), ...volumeMetrics(needs.volumes()), ...families]) + counts()
    },
    async cadvisor() {
      const readDisks = pods.podDiskUsage().catch(() => undefined)
      const [figures, disks] = await Promise.all([
        readFigures(true),
        withinOr(diskTimeoutMs, undefined, readDisks, clock),
      ])
      return text(cadvisorMetrics({ ...figures, disks }))
    },
    resource: async () => text(resourceMetrics(await readFigures())),
    async probes() {
      const { counts, buckets } = probes()
      return text(probeMetrics(counts, buckets))
    },
  }
}

function text(families: Iterable<MetricFamily>): string {
  return [...metricsText(families)].join('')
}
