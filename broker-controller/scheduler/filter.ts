/** Filters nodes for a pod, with Kubernetes' reason for each node that is rejected. */
import type { Taint } from '../../api/node.ts'
import { tolerates } from '../../api/pod/tolerations.ts'
import type { Pod } from '../../api/pod.ts'
import { cannotMount } from '../../api/storage/node-claim.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import type { Cluster } from './cluster.ts'
import {
  affinityText,
  type Neighbours,
  neighbourRefusal,
  neighboursOf,
  type PodRelations,
} from './inter-pod-affinity.ts'
import { isWanted, repellingTaint } from './node-choice.ts'
import type { NodeAllocation } from './node-usage.ts'
import { type PodNeeds, podNeeds } from './pod-needs.ts'
import { missingLabelText, type SpreadRule, spreadRefusal, spreadRulesOf } from './topology-spread.ts'
import { type PodVolumes, podVolumes, type VolumePlugin } from './volumes/pod-volumes.ts'
import { volumeRefusal } from './volumes/volume-refusal.ts'

/** Kubernetes' names of the plugins that reject, and our own one. */
export type Plugin =
  | 'NodeUnschedulable'
  | 'NodeName'
  | 'TaintToleration'
  | 'NodeAffinity'
  | 'AgentVersion'
  | 'NodePorts'
  | 'NodeResourcesFit'
  | VolumePlugin
  | 'PodTopologySpread'
  | 'InterPodAffinity'

export type NodeRefusal = {
  readonly plugin: Plugin
  /** In Kubernetes' words. */
  readonly reasons: readonly string[]
  /** It would stand even if every pod left the node. */
  readonly isFinal: boolean
}

/** Computed once for a pod, before any node is filtered (PreFilter). Valid until a pod, node or volume is added, changed or deleted. */
export type Round = {
  readonly pod: Pod
  readonly needs: PodNeeds
  /** undefined: the pod uses no claims. */
  readonly volumes: PodVolumes | undefined
  readonly spread: readonly SpreadRule[]
  readonly neighbours: Neighbours | undefined
}

/** `relations`: those of the pod, where they are known. */
export function* roundFor(pod: Pod, cluster: Cluster, relations?: PodRelations): Steps<Round> {
  return {
    pod,
    needs: podNeeds(pod),
    volumes: yield* podVolumes(pod, cluster.volumes),
    spread: yield* spreadRulesOf(pod, cluster),
    neighbours: yield* neighboursOf(pod, cluster, relations),
  }
}

type Filter = (round: Round, usage: NodeAllocation) => NodeRefusal | undefined

/** In Kubernetes' order: the first one that refuses gives the reasons. */
const filters: readonly Filter[] = [
  isSchedulable,
  isNamed,
  toleratesTaints,
  isChosen,
  mountsVolumes,
  hasPorts,
  hasResources,
  hasVolumes,
  isSpread,
  hasNeighbours,
]

/** Why the pod cannot run there; undefined when it can. */
export function refusal(round: Round, usage: NodeAllocation): NodeRefusal | undefined {
  for (const filter of filters) {
    const refused = filter(round, usage)
    if (refused !== undefined) return refused
  }
  return undefined
}

/** `1 node(s) were unschedulable, 2 Insufficient cpu`, in the order of the texts; `rest` for the nodes not listed. */
export function countedReasons(
  reasonsByNode: Iterable<readonly string[]>,
  rest?: readonly [reason: string, count: number],
): string {
  const counts = new Map<string, number>(rest !== undefined && rest[1] > 0 ? [rest] : [])
  for (const reasons of reasonsByNode) {
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  return [...counts]
    .map(([reason, count]) => `${count} ${reason}`)
    .sort()
    .join(', ')
}

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.` */
export function unavailable(nodeCount: number, reasons: string): string {
  return reasons === '' ? `0/${nodeCount} nodes are available:` : `0/${nodeCount} nodes are available: ${reasons}.`
}

const cordon: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

function isSchedulable({ pod }: Round, { node }: NodeAllocation): NodeRefusal | undefined {
  if (node.spec?.unschedulable !== true) return undefined
  if (pod.spec.tolerations?.some((toleration) => tolerates(toleration, cordon))) return undefined
  return final('NodeUnschedulable', 'node(s) were unschedulable')
}

function isNamed({ pod }: Round, { name }: NodeAllocation): NodeRefusal | undefined {
  const wanted = pod.spec.nodeName ?? ''
  return wanted === '' || wanted === name
    ? undefined
    : final('NodeName', "node(s) didn't match the requested node name")
}

function toleratesTaints({ pod }: Round, usage: NodeAllocation): NodeRefusal | undefined {
  const taint = repellingTaint(pod, usage)
  if (taint === undefined) return undefined
  return final('TaintToleration', `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`)
}

function isChosen({ pod }: Round, usage: NodeAllocation): NodeRefusal | undefined {
  return isWanted(pod, usage) ? undefined : final('NodeAffinity', "node(s) didn't match Pod's node affinity/selector")
}

/** Not of Kubernetes, whose nodes all mount claims. */
function mountsVolumes({ pod }: Round, { node }: NodeAllocation): NodeRefusal | undefined {
  if (!cannotMount(node, pod)) return undefined
  return final('AgentVersion', 'node(s) ran an agent without volumes')
}

function hasPorts({ needs }: Round, usage: NodeAllocation): NodeRefusal | undefined {
  if (!usage.hasConflict(needs.ports)) return undefined
  return passing('NodePorts', "node(s) didn't have free ports for the requested pod ports")
}

function hasResources({ needs }: Round, usage: NodeAllocation): NodeRefusal | undefined {
  let reasons: string[] | undefined
  let isFinal = false
  if (usage.podCount + 1 > (usage.allocatable.get('pods') ?? 0)) reasons = ['Too many pods']
  for (const [name, amount] of needs.requests) {
    const free = (usage.allocatable.get(name) ?? 0) - usage.requested(name)
    if (amount === 0 || amount <= free) continue
    reasons ??= []
    if (reasons.length < mostReasons) reasons.push(`Insufficient ${name}`)
    if (amount > (usage.allocatable.get(name) ?? 0)) isFinal = true
  }
  return reasons && { plugin: 'NodeResourcesFit', reasons, isFinal }
}

/** Reasons that are named for one node. A pod may ask for thousands of resources, and the message names each. */
const mostReasons = 16

function hasVolumes({ volumes }: Round, usage: NodeAllocation): NodeRefusal | undefined {
  return volumes && volumeRefusal(volumes, usage)
}

function isSpread({ spread }: Round, usage: NodeAllocation): NodeRefusal | undefined {
  const text = spreadRefusal(spread, usage)
  if (text === undefined) return undefined
  return { plugin: 'PodTopologySpread', reasons: [text], isFinal: text === missingLabelText }
}

function hasNeighbours({ neighbours }: Round, usage: NodeAllocation): NodeRefusal | undefined {
  const text = neighbours && neighbourRefusal(neighbours, usage)
  if (text === undefined) return undefined
  return { plugin: 'InterPodAffinity', reasons: [text], isFinal: text === affinityText }
}

function final(plugin: Plugin, reason: string): NodeRefusal {
  return { plugin, reasons: [reason], isFinal: true }
}

function passing(plugin: Plugin, reason: string): NodeRefusal {
  return { plugin, reasons: [reason], isFinal: false }
}
