/** NodeAffinity and TaintToleration: node selector, required affinity and name in the pod, and taints of the node. */
import type { Taint } from '../../api/node.ts'
import { schedulingEffects, untolerated } from '../../api/pod/tolerations.ts'
import type { Pod } from '../../api/pod.ts'
import { type Labels, matchesNodeSelectorTerms } from '../../api/selectors.ts'
import type { NodeAllocation } from './node-usage.ts'

export function isWanted({ spec }: Pod, { node, labels }: NodeAllocation): boolean {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return (
    (spec.nodeSelector === undefined || hasLabels(spec.nodeSelector, labels)) &&
    (required === undefined || matchesNodeSelectorTerms(required.nodeSelectorTerms, node))
  )
}

function hasLabels(wanted: Labels, labels: Labels): boolean {
  for (const key in wanted) if (!Object.hasOwn(labels, key) || labels[key] !== wanted[key]) return false
  return true
}

/** Whether `isWanted` is true for every node. */
export function wantsAnyNode({ spec }: Pod): boolean {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return required === undefined && Object.keys(spec.nodeSelector ?? {}).length === 0
}

/** The first taint that keeps the pod away. */
export function repellingTaint({ spec }: Pod, { taints }: NodeAllocation): Taint | undefined {
  return taints.length === 0 ? undefined : untolerated(taints, spec.tolerations ?? [], schedulingEffects)[0]
}

/** The only nodes whose names its terms allow; undefined when some term names no nodes. None at all: they conflict. */
export function namedNodes({ spec }: Pod): ReadonlySet<string> | undefined {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  if (terms.length === 0) return undefined
  const names = new Set<string>()
  for (const { matchFields = [] } of terms) {
    const asked = matchFields.filter(({ key, operator }) => key === 'metadata.name' && operator === 'In')
    const [first, ...others] = asked.map(({ values = [] }) => values)
    if (first === undefined) return undefined
    for (const name of first) if (others.every((values) => values.includes(name))) names.add(name)
  }
  return names
}
