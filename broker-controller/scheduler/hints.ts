/** Queueing hints: whether a change may let a pod fit that did not fit before. Decided by the plugins that rejected it. */
import type { Pod } from '../../api/pod.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import type { StoredObject } from '../store/store.ts'
import type { Cluster } from './cluster.ts'
import { type Plugin, refusal } from './filter.ts'
import type { NodeAllocation } from './node-usage.ts'
import { podNeeds } from './pod-needs.ts'
import { type PodTerm, podTerms, termMatches } from './pod-terms.ts'
import type { KnownClaim, KnownVolume } from './volumes/volume-cache.ts'
import { usesClaims } from './volumes/volume-cache.ts'
import { isRefusedByVolumes, mayUseClass, mayUseVolume, shareClaim, usesClaim } from './volumes/volume-hints.ts'

export type ClusterChange =
  /** It was added, it changed, or capacity on it is no longer nominated for a pod. */
  | { readonly change: 'node'; readonly nodeName: string }
  | { readonly change: 'node gone' }
  /** Deleted or finished; without `nodeName` it is still there, but not as it was. */
  | { readonly change: 'pod gone'; readonly pod: Pod; readonly nodeName?: string }
  | { readonly change: 'pod placed'; readonly pod: Pod }
  | { readonly change: 'namespace' }
  /** Each was added, or changed so that it may matter. */
  | { readonly change: 'claim'; readonly claim: KnownClaim }
  | { readonly change: 'volume'; readonly volume: KnownVolume }
  | { readonly change: 'storage class'; readonly storageClass: StoredObject<'storageclasses'> }

/** Whether one of the changes may let the pod fit. */
export function* mayFitAfter(waiting: Waiting, changes: readonly ClusterChange[], nodes: Cluster): Steps<boolean> {
  for (const change of changes) {
    if (mayFit(waiting, change, nodes)) return true
    yield
  }
  return false
}

export type Waiting = { readonly pod: Pod; readonly refusedBy: ReadonlySet<Plugin> }

export function mayFit(waiting: Waiting, change: ClusterChange, nodes: Cluster): boolean {
  const { pod, refusedBy } = waiting
  switch (change.change) {
    case 'node':
      return refusedBy.has('PodTopologySpread') || couldTake(nodes.node(change.nodeName), pod)
    case 'node gone':
      return refusedBy.has('PodTopologySpread')
    case 'pod gone':
      return mayFitWithout(waiting, change, nodes)
    case 'pod placed':
      return (
        (refusedBy.has('PodTopologySpread') && countsFor(pod, change.pod)) ||
        (refusedBy.has('InterPodAffinity') && podTerms(pod).affinity.some((term) => matches(term, change.pod, nodes)))
      )
    case 'namespace':
      return refusedBy.has('InterPodAffinity')
    case 'claim':
      return isRefusedByVolumes(refusedBy) && usesClaim(pod, change.claim)
    case 'volume':
      return isRefusedByVolumes(refusedBy) && mayUseVolume(pod, change.volume, nodes.volumes)
    case 'storage class':
      return isRefusedByVolumes(refusedBy) && mayUseClass(pod, change.storageClass, nodes.volumes)
  }
}

function mayFitWithout(
  { pod, refusedBy }: Waiting,
  { pod: gone, nodeName = '' }: { readonly pod: Pod; readonly nodeName?: string },
  nodes: Cluster,
): boolean {
  return (
    (refusedBy.has('PodTopologySpread') && countsFor(pod, gone)) ||
    (refusedBy.has('InterPodAffinity') && keepApart(pod, gone, nodes)) ||
    (refusedBy.has('VolumeRestrictions') && shareClaim(pod, gone)) ||
    (refusedBy.has('NodeVolumeLimits') && usesClaims(gone)) ||
    ((refusedBy.has('NodeResourcesFit') || refusedBy.has('NodePorts')) && couldTake(nodes.node(nodeName), pod))
  )
}

/** There is capacity, or there would be after preemption of pods with lower priority. Its inter-pod affinity is checked later. */
function couldTake(usage: NodeAllocation | undefined, pod: Pod): boolean {
  if (usage === undefined) return false
  const refused = refusal({ pod, needs: podNeeds(pod), volumes: undefined, spread: [], neighbours: undefined }, usage)
  if (refused === undefined) return true
  return !refused.isFinal && pod.spec.preemptionPolicy !== 'Never' && usage.hasPodBelow(pod.spec.priority ?? 0)
}

function countsFor(pod: Pod, { metadata }: Pod): boolean {
  if (metadata.namespace !== pod.metadata.namespace) return false
  return podTerms(pod).hardSpread.some(({ selectsPods }) => selectsPods?.(metadata.labels) === true)
}

function keepApart(pod: Pod, other: Pod, nodes: Cluster): boolean {
  return (
    podTerms(pod).antiAffinity.some((term) => matches(term, other, nodes)) ||
    podTerms(other).antiAffinity.some((term) => matches(term, pod, nodes))
  )
}

function matches(term: PodTerm, pod: Pod, nodes: Cluster): boolean {
  return termMatches(term, pod, nodes.namespaceLabels(pod.metadata.namespace ?? ''))
}
