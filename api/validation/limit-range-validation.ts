/** Validates LimitRanges (ValidateLimitRange in pkg/apis/core/validation/validation.go). */
import type { LimitRange, LimitRangeItem } from '../limits/limit-range.ts'
import { amountNamed, type ResourceAmounts } from '../limits/resource-amounts.ts'
import { containerResourceProblems, isOvercommitAllowed, resourceNameProblems } from '../limits/resource-names.ts'
import { qualifiedNameProblem } from '../names.ts'
import { duplicate, forbidden, invalid, type Problem, required } from '../problem.ts'
import { compareQuantities, formatQuantity, milliValue, type QuantityLike } from '../quantity.ts'
import { problemsWith } from './metadata-validation.ts'
import { repeatedPlaces } from './repeated.ts'

const types = ['Pod', 'Container', 'PersistentVolumeClaim']

export function limitRangeProblems({ spec = {} }: LimitRange): readonly Problem[] {
  const limits = spec.limits ?? []
  const repeated = repeatedPlaces(limits.map(({ type = '' }) => type))
  return limits.flatMap((limit, index) => {
    const field = `spec.limits[${index}]`
    return [
      ...typeProblems(`${field}.type`, limit.type ?? ''),
      ...(repeated.has(index) ? [duplicate(`${field}.type`, limit.type ?? '')] : []),
      ...nameProblems(field, limit),
      ...fieldProblems(field, limit),
      ...namesIn(limit).flatMap((name) => amountProblems(field, name, limit)),
    ]
  })
}

function typeProblems(field: string, type: string): readonly Problem[] {
  const problems = problemsWith(field, type, qualifiedNameProblem)
  if (problems.length > 0 || type.includes('/') || types.includes(type)) return problems
  return [invalid(field, type, 'must be a standard limit type or fully qualified')]
}

const parts = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const

/** Defaults of a pod are refused whole. */
function partsOf({ type }: LimitRangeItem) {
  return type === 'Pod' ? parts.filter((part) => part !== 'default' && part !== 'defaultRequest') : parts
}

function nameProblems(field: string, limit: LimitRangeItem): readonly Problem[] {
  const isOfContainers = limit.type === 'Pod' || limit.type === 'Container'
  const problemsOf = isOfContainers ? containerResourceProblems : resourceNameProblems
  return partsOf(limit).flatMap((part) =>
    Object.keys(limit[part] ?? {}).flatMap((name) => problemsOf(`${field}.${part}[${name}]`, name)),
  )
}

function fieldProblems(field: string, limit: LimitRangeItem): readonly Problem[] {
  if (limit.type === 'Pod') {
    return (['default', 'defaultRequest'] as const)
      .filter((part) => Object.keys(limit[part] ?? {}).length > 0)
      .map((part) => forbidden(`${field}.${part}`, "may not be specified when `type` is 'Pod'"))
  }
  const { min = {}, max = {} } = limit
  const isBounded = amountNamed(min, 'storage') !== undefined || amountNamed(max, 'storage') !== undefined
  if (limit.type !== 'PersistentVolumeClaim' || isBounded) return []
  const because = 'either minimum or maximum storage value is required, but neither was provided'
  return [required(`${field}.limits`, because)]
}

function namesIn(limit: LimitRangeItem): readonly string[] {
  return [...new Set(partsOf(limit).flatMap((part) => Object.keys(limit[part] ?? {})))]
}

function amountProblems(field: string, name: string, limit: LimitRangeItem): readonly Problem[] {
  const of = (amounts: ResourceAmounts = {}) => amountNamed(amounts, name)
  const [min, max, ratio] = [of(limit.min), of(limit.max), of(limit.maxLimitRequestRatio)]
  const [given, request] = limit.type === 'Pod' ? [] : [of(limit.default), of(limit.defaultRequest)]
  const greater = (part: string, value: QuantityLike | undefined, low: Named, high: Named): readonly Problem[] => {
    if (low.is === undefined || high.is === undefined || compareQuantities(low.is, high.is) <= 0) return []
    const because = `${low.name} value ${formatQuantity(low.is)} is greater than ${high.name} value ${formatQuantity(high.is)}`
    return [invalid(`${field}.${part}[${name}]`, formatQuantity(value ?? 0), because)]
  }
  const [lowest, highest] = [
    { name: 'min', is: min },
    { name: 'max', is: max },
  ]
  const asked = { name: 'default request', is: request }
  return [
    ...greater('min', min, lowest, highest),
    ...greater('defaultRequest', request, lowest, asked),
    ...greater('defaultRequest', request, asked, highest),
    ...greater('defaultRequest', request, asked, { name: 'default limit', is: given }),
    ...greater('default', min, lowest, { name: 'default', is: given }),
    ...greater('default', max, { name: 'default', is: given }, highest),
    ...ratioProblems(`${field}.maxLimitRequestRatio[${name}]`, ratio, min, max),
    ...sameProblems(`${field}.defaultRequest[${name}]`, name, given, request),
  ]
}

type Named = { readonly name: string; readonly is: QuantityLike | undefined }

function ratioProblems(
  field: string,
  ratio: QuantityLike | undefined,
  min: QuantityLike | undefined,
  max: QuantityLike | undefined,
): readonly Problem[] {
  if (ratio === undefined) return []
  const text = formatQuantity(ratio)
  const small = compareQuantities(ratio, 1) < 0 ? [invalid(field, text, `ratio ${text} is less than 1`)] : []
  if (min === undefined || max === undefined) return small
  const most = milliValue(max) / milliValue(min)
  if (!(milliValue(ratio) / 1000 > most)) return small
  return [...small, invalid(field, text, `ratio ${text} is greater than max/min = ${most.toFixed(6)}`)]
}

/** Devices and huge pages are not shared: a request is a limit. */
function sameProblems(
  field: string,
  name: string,
  given: QuantityLike | undefined,
  request: QuantityLike | undefined,
): readonly Problem[] {
  if (isOvercommitAllowed(name) || given === undefined || request === undefined) return []
  if (compareQuantities(given, request) === 0) return []
  const [limit, asked] = [formatQuantity(given), formatQuantity(request)]
  return [invalid(field, asked, `default value ${limit} must equal to defaultRequest value ${asked} in ${name}`)]
}
