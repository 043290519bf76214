/** A cluster as the scheduler sees it, from a few words. */
import type { Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../../api/pod.ts'
import { aNode, aPod, type NodeOverrides, type PodOverrides } from '../../api/testing/builders.ts'
import { finished } from '../../daemon/watchdog/steps.ts'
import { type ClusterCache, cluster } from '../scheduler/cluster.ts'
import { refusal, roundFor } from '../scheduler/filter.ts'

export type Bound = PodOverrides & { readonly nodeName: string }

/** Pods are called `p0`, `p1`, … where they have no name. */
export function aCluster(nodes: readonly NodeOverrides[], bound: readonly Bound[] = []): ClusterCache {
  const known = cluster()
  for (const over of nodes) known.putNode(aNode(over))
  for (const [i, over] of bound.entries()) {
    const pod = aPod({ name: `p${i}`, ...over })
    known.place(`${pod.metadata.namespace}/${pod.metadata.name}`, pod, over.nodeName)
  }
  return known
}

/** Node to the reasons against it, for those that refuse. */
export function refusalsOf(pod: Pod, known: ClusterCache): { readonly [nodeName: string]: readonly string[] } {
  const round = finished(roundFor(pod, known))
  const refused = [...known.from(0)].flatMap((usage) => {
    const found = refusal(round, usage)
    return found === undefined ? [] : [[usage.name, found.reasons] as const]
  })
  return Object.fromEntries(refused)
}

export const zoneKey = 'topology.kubernetes.io/zone'
export const hostKey = 'kubernetes.io/hostname'

/** Node `name` in a zone. */
export function inZone(name: string, zone: string, more: NodeOverrides = {}): NodeOverrides {
  return { ...more, name, labels: { [zoneKey]: zone, ...more.labels } }
}

type Kind = 'podAffinity' | 'podAntiAffinity'

/** Pods with `app=APP`, within one node unless the term sets another topology key. */
export function requires(kind: Kind, app: string, more: Partial<PodAffinityTerm> = {}): Partial<PodSpec> {
  return { affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: [termFor(app, more)] } } }
}

export function prefers(kind: Kind, app: string, more: Partial<PodAffinityTerm> = {}, weight = 1): Partial<PodSpec> {
  const podAffinityTerm = termFor(app, more)
  return { affinity: { [kind]: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight, podAffinityTerm }] } } }
}

function termFor(app: string, more: Partial<PodAffinityTerm>): PodAffinityTerm {
  return { topologyKey: hostKey, labelSelector: { matchLabels: { app } }, ...more }
}

/** Pods with `app=web`, a skew of one between zones, strictly. */
export function spreads(...constraints: readonly Partial<TopologySpreadConstraint>[]): Partial<PodSpec> {
  return {
    topologySpreadConstraints: constraints.map((over) => ({
      maxSkew: 1,
      topologyKey: zoneKey,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 'web' } },
      ...over,
    })),
  }
}

/** Numbers that look like chance and are the same every time. */
export function dice(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 16807) % 2147483647
    return state / 2147483647
  }
}
