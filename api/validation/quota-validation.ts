/** Validates ResourceQuotas (ValidateResourceQuota in pkg/apis/core/validation/validation.go). */
import type { ResourceAmounts } from '../limits/resource-amounts.ts'
import { isStandardOfQuotas, isWholeNumber, quotaResourceProblems } from '../limits/resource-names.ts'
import type { ResourceQuota, ResourceQuotaSpec, ScopeRequirement } from '../limits/resource-quota.ts'
import { invalid, type Problem, required } from '../problem.ts'
import { compareQuantities, formatQuantity, milliValue, zeroQuantity } from '../quantity.ts'
import { tooMany } from './endpoints-validation.ts'

export function quotaProblems({ spec = {} }: ResourceQuota): readonly Problem[] {
  return [
    ...hardProblems('spec.hard', spec.hard),
    ...scopesProblems(spec),
    ...(spec.scopeSelector?.matchExpressions ?? []).flatMap((one) => requirementProblems(spec, one)),
    ...conflictProblems(
      spec,
      (spec.scopeSelector?.matchExpressions ?? []).map(({ scopeName }) => scopeName),
      'spec.scopeSelector.matchExpressions',
    ),
  ]
}

export function quotaChangeProblems(old: ResourceQuota, now: ResourceQuota): readonly Problem[] {
  const [before, after] = [new Set(old.spec?.scopes), new Set(now.spec?.scopes)]
  const isSame = before.size === after.size && [...before].every((scope) => after.has(scope))
  const fixed = isSame ? [] : [invalid('spec.scopes', now.spec?.scopes ?? [], 'field is immutable')]
  return [...quotaProblems(now), ...fixed]
}

export function quotaStatusProblems({ status = {} }: ResourceQuota): readonly Problem[] {
  return [...hardProblems('status.hard', status.hard), ...hardProblems('status.used', status.used)]
}

/** Each takes 10 us to check, and a cluster has far fewer resources. Kubernetes has no limit but that of the object. */
const mostResources = 1000

function hardProblems(field: string, amounts: ResourceAmounts = {}): readonly Problem[] {
  const excess = tooMany(field, Object.keys(amounts).length, mostResources)
  if (excess.length > 0) return excess
  return Object.entries(amounts).flatMap(([name, amount]) => {
    const at = `${field}[${name}]`
    const isNegative = compareQuantities(amount, zeroQuantity) < 0
    const isBroken = isWholeNumber(name) && milliValue(amount) % 1000 !== 0
    return [
      ...quotaResourceProblems(at, name),
      ...(isNegative ? [invalid(at, formatQuantity(amount), 'must be greater than or equal to 0')] : []),
      ...(isBroken ? [invalid(at, formatQuantity(amount), 'must be an integer')] : []),
    ]
  })
}

const withoutValues = [...['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating'], 'CrossNamespacePodAffinity']
const scopeNames = [...withoutValues, 'PriorityClass']
const scoped = new Set([
  ...['pods', 'cpu', 'memory'],
  ...['limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory'],
])

/** Each standard resource that the scope does not apply to. */
function outsideScope(scope: string, { hard = {} }: ResourceQuotaSpec): readonly string[] {
  if (!scopeNames.includes(scope)) return []
  const applies = (name: string) => (scope === 'BestEffort' ? name === 'pods' : scoped.has(name))
  return Object.keys(hard).filter((name) => isStandardOfQuotas(name) && !applies(name))
}

function scopesProblems(spec: ResourceQuotaSpec): readonly Problem[] {
  const { scopes = [] } = spec
  const field = 'spec.scopes'
  return [
    ...scopes.flatMap((scope) => [
      ...(scopeNames.includes(scope) ? [] : [invalid(field, scopes, 'unsupported scope')]),
      ...outsideScope(scope, spec).map(() => invalid(field, scopes, 'unsupported scope applied to resource')),
    ]),
    ...conflictProblems(spec, scopes, field),
  ]
}

function requirementProblems(spec: ResourceQuotaSpec, requirement: ScopeRequirement): readonly Problem[] {
  const { scopeName, operator, values = [] } = requirement
  const field = 'spec.scopeSelector.matchExpressions'
  const exists =
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, " +
    'ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity'
  return [
    ...(scopeNames.includes(scopeName) ? [] : [invalid(`${field}.scopeName`, scopeName, 'unsupported scope')]),
    ...outsideScope(scopeName, spec).map(() =>
      invalid(field, spec.scopeSelector, 'unsupported scope applied to resource'),
    ),
    ...(withoutValues.includes(scopeName) && operator !== 'Exists'
      ? [invalid(`${field}.operator`, operator, exists)]
      : []),
    ...valueProblems(field, operator, values),
  ]
}

function valueProblems(field: string, operator: string, values: readonly string[]): readonly Problem[] {
  switch (operator) {
    case 'In':
    case 'NotIn': {
      const because = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
      return values.length > 0 ? [] : [required(`${field}.values`, because)]
    }
    case 'Exists':
    case 'DoesNotExist': {
      const because = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
      return values.length === 0 ? [] : [invalid(`${field}.values`, values, because)]
    }
    default:
      return [invalid(`${field}.operator`, operator, 'not a valid selector operator')]
  }
}

/** As upstream, the value is that of `scopes` in both places. */
function conflictProblems(
  { scopes = [] }: ResourceQuotaSpec,
  names: readonly string[],
  field: string,
): readonly Problem[] {
  return [
    ['BestEffort', 'NotBestEffort'],
    ['Terminating', 'NotTerminating'],
  ].flatMap((pair) =>
    pair.every((scope) => names.includes(scope)) ? [invalid(field, scopes, 'conflicting scopes')] : [],
  )
}
