/** Which objects a quota with scopes counts (podMatchesScopeFunc in pkg/quota/v1/evaluator/core/pods.go). */
import type { ScopeRequirement } from '../../../api/limits/resource-quota.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { qosClassOf } from '../../../api/pod/qos-class.ts'
import type { Pod } from '../../../api/pod.ts'
import type { CountedKind } from './usage.ts'

/** Whether all requirements hold. Only pods have scopes. */
export function isInScope(kind: CountedKind, object: AnyObject, requirements: readonly ScopeRequirement[]): boolean {
  if (requirements.length === 0) return true
  return kind.id === 'pods' && requirements.every((requirement) => holds(requirement, object as Pod))
}

function holds({ scopeName, operator, values = [] }: ScopeRequirement, pod: Pod): boolean {
  const { spec } = pod
  switch (scopeName) {
    case 'Terminating':
      return isTerminating(pod)
    case 'NotTerminating':
      return !isTerminating(pod)
    case 'BestEffort':
      return qosClassOf(spec) === 'BestEffort'
    case 'NotBestEffort':
      return qosClassOf(spec) !== 'BestEffort'
    case 'PriorityClass':
      return hasClass(spec.priorityClassName ?? '', operator, values)
    case 'CrossNamespacePodAffinity':
      return affinityTerms(pod).some(
        ({ namespaces = [], namespaceSelector }) => namespaces.length > 0 || namespaceSelector !== undefined,
      )
    default:
      return false
  }
}

/** It has a deadline, and ends by itself. */
function isTerminating({ spec }: Pod): boolean {
  return (spec.activeDeadlineSeconds ?? -1) >= 0
}

function hasClass(name: string, operator: string, values: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return values.includes(name)
    case 'NotIn':
      return !values.includes(name)
    case 'Exists':
      return name !== ''
    default:
      return name === ''
  }
}

function affinityTerms({ spec }: Pod) {
  return [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity].flatMap((affinity) => [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ])
}
