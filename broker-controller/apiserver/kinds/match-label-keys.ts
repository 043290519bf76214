/** `matchLabelKeys`: the pod's own labels become part of what it asks of its neighbours, once, when it is created. */
import type { LabelSelector } from '../../../api/meta.ts'
import type { Affinity, Pod, PodAffinityTerm, PodSpec } from '../../../api/pod.ts'

export function withMatchLabelKeys({ metadata, spec }: Pod): PodSpec {
  const { affinity } = spec
  if (affinity?.podAffinity === undefined && affinity?.podAntiAffinity === undefined) return spec
  const { podAffinity, podAntiAffinity } = affinity
  const labels = metadata.labels ?? {}
  return {
    ...spec,
    affinity: {
      ...affinity,
      ...(podAffinity && { podAffinity: resolved(podAffinity, labels) }),
      ...(podAntiAffinity && { podAntiAffinity: resolved(podAntiAffinity, labels) }),
    },
  }
}

type Labels = { readonly [key: string]: string }
type PodAffinity = NonNullable<Affinity['podAffinity']>

function resolved(affinity: PodAffinity, labels: Labels): PodAffinity {
  const required = affinity.requiredDuringSchedulingIgnoredDuringExecution
  const preferred = affinity.preferredDuringSchedulingIgnoredDuringExecution
  return {
    ...(required && {
      requiredDuringSchedulingIgnoredDuringExecution: required.map((term) => resolvedTerm(term, labels)),
    }),
    ...(preferred && {
      preferredDuringSchedulingIgnoredDuringExecution: preferred.map(({ weight, podAffinityTerm }) => ({
        weight,
        podAffinityTerm: resolvedTerm(podAffinityTerm, labels),
      })),
    }),
  }
}

/** Without a selector there is nothing to add to, and the keys are refused. */
function resolvedTerm(term: PodAffinityTerm, labels: Labels): PodAffinityTerm {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = term
  const added = [...asked(matchLabelKeys, 'In', labels), ...asked(mismatchLabelKeys, 'NotIn', labels)]
  if (labelSelector === undefined || added.length === 0) return term
  const matchExpressions = [...(labelSelector.matchExpressions ?? []), ...added]
  return { ...term, labelSelector: { ...labelSelector, matchExpressions } }
}

function asked(
  keys: readonly string[],
  operator: 'In' | 'NotIn',
  labels: Labels,
): NonNullable<LabelSelector['matchExpressions']> {
  return keys.flatMap((key) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined
    return value === undefined ? [] : [{ key, operator, values: [value] }]
  })
}
