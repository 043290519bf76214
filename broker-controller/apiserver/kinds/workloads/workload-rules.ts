/** Rules that several kinds of workloads have in common. */
import { type LabelSelector, LabelSelectorSchema } from '../../../../api/meta.ts'
import { invalid, type Problem } from '../../../../api/problem.ts'
import { isSameInGo } from '../go-equality.ts'

type Share = number | string
type RollingLimits = { readonly maxUnavailable?: Share; readonly maxSurge?: Share }
type UpdateStrategy = { readonly type?: string; readonly rollingUpdate?: RollingLimits }

/** The strategy with its type, and a rolling update with both limits: `limits` for those that are absent (pkg/apis/apps/v1/defaults.go). */
export function withUpdateDefaults(
  { type: given, rollingUpdate }: UpdateStrategy = {},
  limits: Required<RollingLimits>,
): UpdateStrategy {
  const type = given || 'RollingUpdate'
  const { maxUnavailable = limits.maxUnavailable, maxSurge = limits.maxSurge } = rollingUpdate ?? {}
  if (type === 'RollingUpdate') return { type, rollingUpdate: { maxUnavailable, maxSurge } }
  return { type, ...(rollingUpdate && { rollingUpdate }) }
}

type Selecting = { readonly spec: { readonly selector?: LabelSelector } }

/** For a kind whose selector is immutable. */
export function selectorChangeProblems({ spec: old }: Selecting, { spec: now }: Selecting): readonly Problem[] {
  const isSame = isSameInGo(LabelSelectorSchema, old.selector, now.selector)
  return isSame ? [] : [invalid('spec.selector', now.selector, 'field is immutable')]
}
