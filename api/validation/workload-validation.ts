/** Validates what workloads have in common (pkg/apis/apps/validation/validation.go, pkg/apis/core/validation/validation.go). */
import type { LabelSelector } from '../meta.ts'
import type { PodTemplateSpec } from '../pod.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { matchesLabels, requirementsOf } from '../selectors.ts'
import { podTemplateProblems } from './pod-validation.ts'
import { selectorProblems } from './scheduling-validation.ts'

const largestInt32 = 2 ** 31 - 1

/** A count of 32 bits; an absent one is fine. */
export function countProblems(field: string, count: number | undefined): readonly Problem[] {
  if (count === undefined || (count >= 0 && count <= largestInt32)) return []
  const limit = count < 0 ? 'must be greater than or equal to 0' : `must be less than or equal to ${largestInt32}`
  return [invalid(field, count, limit)]
}

/** Problems of a selector, which must not be empty. `of`: the kind's name in messages. */
export function workloadSelectorProblems(
  field: string,
  selector: LabelSelector | undefined,
  of: string,
): readonly Problem[] {
  if (selector === undefined) return [required(field)]
  const { matchLabels = {}, matchExpressions = [] } = selector
  const isEmpty = Object.keys(matchLabels).length + matchExpressions.length === 0
  return [
    ...selectorProblems(field, selector),
    ...(isEmpty ? [invalid(field, selector, `empty selector is invalid for ${of}`)] : []),
  ]
}

/**
 * Problems of a template whose pods run until they are deleted. The selector, at `selectorField`, must match it.
 * `kind`: its name in messages.
 */
export function lastingTemplateProblems(
  { field, selectorField, kind }: { readonly field: string; readonly selectorField: string; readonly kind: string },
  template: PodTemplateSpec,
  selector: LabelSelector | undefined,
): readonly Problem[] {
  const requirements = requirementsOf(selector)
  if (requirements?.ok === false) return [invalid(selectorField, selector, 'invalid label selector')]
  const labels = template.metadata?.labels
  const isSelected = requirements === undefined || matchesLabels(requirements.value, labels)
  const { restartPolicy = '', activeDeadlineSeconds } = template.spec
  const deadline = `activeDeadlineSeconds in ${kind} is not Supported`
  return [
    ...(isSelected
      ? []
      : [invalid(`${field}.metadata.labels`, labels ?? null, '`selector` does not match template `labels`')]),
    ...podTemplateProblems(field, template),
    ...(restartPolicy === 'Always' ? [] : [notSupported(`${field}.spec.restartPolicy`, restartPolicy, ['Always'])]),
    ...(activeDeadlineSeconds === undefined ? [] : [forbidden(`${field}.spec.activeDeadlineSeconds`, deadline)]),
  ]
}

/** Problems of the counts of a status, none of which may exceed `status.replicas`. */
export function statusCountProblems(
  status: { readonly replicas?: number; readonly readyReplicas?: number; readonly availableReplicas?: number },
  more: { readonly [field: string]: number | undefined },
  inReplicas: readonly string[],
): readonly Problem[] {
  const { replicas = 0, readyReplicas = 0, availableReplicas = 0 } = status
  const counts: { readonly [field: string]: number | undefined } = {
    replicas,
    readyReplicas,
    availableReplicas,
    ...more,
  }
  return [
    ...Object.entries(counts).flatMap(([name, count]) =>
      count !== undefined && count < 0 ? [invalid(`status.${name}`, count, 'must be greater than or equal to 0')] : [],
    ),
    ...inReplicas.flatMap((name) =>
      (counts[name] ?? 0) > replicas
        ? [invalid(`status.${name}`, counts[name], 'cannot be greater than status.replicas')]
        : [],
    ),
    ...(availableReplicas > readyReplicas
      ? [invalid('status.availableReplicas', availableReplicas, 'cannot be greater than readyReplicas')]
      : []),
  ]
}
