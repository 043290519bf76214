/** Can this pod run on that node, and if not, in whose words? */
import type { Taint } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import { matchesNodeSelectorTerms } from '../../api/selectors.ts'
import { schedulingEffects, tolerates, untolerated } from '../../api/tolerations.ts'
import type { NodeUsage } from './node-usage.ts'
import { type PodNeeds, podNeeds } from './pod-needs.ts'

type Filter = (pod: Pod, usage: NodeUsage, needs: PodNeeds) => readonly string[]

/** In Kubernetes' order: the first one that refuses gives the reasons. */
const filters: readonly Filter[] = [isSchedulable, isNamed, toleratesTaints, isSelected, hasPorts, hasResources]

/** Why the pod cannot run there, in Kubernetes' words; empty when it can. */
export function refusals(pod: Pod, usage: NodeUsage): readonly string[] {
  const needs = podNeeds(pod)
  for (const filter of filters) {
    const reasons = filter(pod, usage, needs)
    if (reasons.length > 0) return reasons
  }
  return []
}

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.` */
export function unschedulableMessage(refusalsByNode: readonly (readonly string[])[]): string {
  if (refusalsByNode.length === 0) return 'no nodes available to schedule pods'
  const counts = new Map<string, number>()
  for (const reason of refusalsByNode.flat()) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const told = [...counts].map(([reason, count]) => `${count} ${reason}`).sort()
  return `0/${refusalsByNode.length} nodes are available: ${told.join(', ')}.`
}

const cordon: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

function isSchedulable({ spec }: Pod, { node }: NodeUsage): readonly string[] {
  if (node.spec?.unschedulable !== true) return []
  return spec.tolerations?.some((toleration) => tolerates(toleration, cordon)) ? [] : ['node(s) were unschedulable']
}

function isNamed({ spec }: Pod, { node }: NodeUsage): readonly string[] {
  const wanted = spec.nodeName ?? ''
  return wanted === '' || wanted === node.metadata.name ? [] : ["node(s) didn't match the requested node name"]
}

function toleratesTaints({ spec }: Pod, { taints }: NodeUsage): readonly string[] {
  const [taint] = untolerated(taints, spec.tolerations ?? [], schedulingEffects)
  return taint === undefined ? [] : [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`]
}

function isSelected({ spec }: Pod, { node }: NodeUsage): readonly string[] {
  const labels = node.metadata.labels ?? {}
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const fits =
    Object.entries(spec.nodeSelector ?? {}).every(
      ([key, value]) => Object.hasOwn(labels, key) && labels[key] === value,
    ) &&
    (required === undefined || matchesNodeSelectorTerms(required.nodeSelectorTerms, node))
  return fits ? [] : ["node(s) didn't match Pod's node affinity/selector"]
}

function hasPorts(_pod: Pod, usage: NodeUsage, { ports }: PodNeeds): readonly string[] {
  return usage.hasConflict(ports) ? ["node(s) didn't have free ports for the requested pod ports"] : []
}

function hasResources(_pod: Pod, usage: NodeUsage, { requests }: PodNeeds): readonly string[] {
  const tooMany = usage.podCount + 1 > (usage.allocatable.get('pods') ?? 0) ? ['Too many pods'] : []
  const short = [...requests]
    .filter(([name, amount]) => amount > 0 && amount > (usage.allocatable.get(name) ?? 0) - usage.requested(name))
    .map(([name]) => `Insufficient ${name}`)
  return [...tooMany, ...short]
}
