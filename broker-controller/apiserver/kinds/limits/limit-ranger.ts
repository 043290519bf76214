/**
 * What the LimitRanges of a namespace mean for a new pod: the requests and limits that its containers get, and the reasons
 * to refuse it (plugin/pkg/admission/limitranger/admission.go; messages as there).
 */
import type { LimitRange, LimitRangeItem } from '../../../../api/limits/limit-range.ts'
import {
  amountNamed,
  limitsOfPod,
  type ResourceAmounts,
  requestsOfPod,
} from '../../../../api/limits/resource-amounts.ts'
import type { Container, Pod } from '../../../../api/pod.ts'
import {
  compareQuantities,
  formatQuantity,
  milliValue,
  type QuantityLike,
  zeroQuantity,
} from '../../../../api/quantity.ts'
import type { PersistentVolumeClaim } from '../../../../api/storage/persistent-volume-claim.ts'
import { mostValues, tooManyValues } from '../../wire/body-limits.ts'

const annotation = 'kubernetes.io/limit-ranger'

/**
 * The pod with the defaults of the ranges, the first of them first, and with an annotation that names what was set. Throws
 * RequestEntityTooLarge where its containers and the amounts of the ranges have more in common than an object may have: each container
 * is compared with each of them.
 */
export function withLimitDefaults(pod: Pod, ranges: readonly LimitRange[]): Pod {
  const { containers, initContainers = [] } = pod.spec
  const amounts = ranges.flatMap(itemsOf).reduce((sum, item) => sum + amountsIn(item), 0)
  if ((containers.length + initContainers.length) * amounts > mostValues) throw tooManyValues()
  return ranges.reduce(withDefaultsOf, pod)
}

function amountsIn({ type: _, ...parts }: LimitRangeItem): number {
  return Object.values(parts).reduce((sum, amounts) => sum + Object.keys(amounts ?? {}).length, 0)
}

/** The sentence of a 403 for the first range that the pod is outside of; undefined: it may be created. */
export function limitViolation({ spec }: Pod, ranges: readonly LimitRange[]): string | undefined {
  return firstViolation(ranges, (item) => {
    if (item.type === 'Pod') return violations(item, requestsOfPod(spec), limitsOfPod(spec))
    if (item.type !== 'Container') return []
    return [...spec.containers, ...(spec.initContainers ?? [])].flatMap(({ resources = {} }) =>
      violations(item, resources.requests ?? {}, resources.limits ?? {}),
    )
  })
}

/** The same for a claim: its size (PersistentVolumeClaimLimitFunc). */
export function claimViolation(
  { spec = {} }: PersistentVolumeClaim,
  ranges: readonly LimitRange[],
): string | undefined {
  const requests = spec.resources?.requests ?? {}
  return firstViolation(ranges, ({ type = '', min = {}, max = {} }) =>
    type === 'PersistentVolumeClaim'
      ? [
          ...eachAmount(type, min, requests, {}, belowMinimum),
          ...eachAmount(type, max, requests, {}, aboveRequestMaximum),
        ]
      : [],
  )
}

function firstViolation(
  ranges: readonly LimitRange[],
  violationsOf: (item: LimitRangeItem) => readonly string[],
): string | undefined {
  for (const range of ranges) {
    const [first, ...more] = new Set(itemsOf(range).flatMap(violationsOf))
    if (first !== undefined) return more.length === 0 ? first : `[${[first, ...more].join(', ')}]`
  }
  return undefined
}

function itemsOf({ spec }: LimitRange): readonly LimitRangeItem[] {
  return spec?.limits ?? []
}

type Quantities = { readonly [name: string]: string | number }

function withDefaultsOf(pod: Pod, range: LimitRange): Pod {
  const ofContainers = itemsOf(range).filter(({ type }) => type === 'Container')
  const together = (part: 'default' | 'defaultRequest'): Quantities =>
    Object.fromEntries(ofContainers.flatMap((item) => Object.entries(item[part] ?? {})))
  const [limits, requests] = [together('default'), together('defaultRequest')]
  const set: string[] = []
  const filled = (what: string) => (container: Container) => {
    const before = container.resources ?? {}
    // A limit without a request is a request (SetDefaults_Pod), before the defaults of the range.
    const asked: Quantities = { ...before.limits, ...before.requests }
    const given = before.limits ?? {}
    const missing = (defaults: object, present: object) =>
      Object.keys(defaults)
        .filter((name) => !Object.hasOwn(present, name))
        .sort()
        .join(', ')
    const [newRequests, newLimits] = [missing(requests, asked), missing(limits, given)]
    if (newRequests !== '') set.push(`${newRequests} request for ${what} ${container.name}`)
    if (newLimits !== '') set.push(`${newLimits} limit for ${what} ${container.name}`)
    if (newRequests === '' && newLimits === '') return container
    const resources = { ...before, limits: { ...limits, ...given }, requests: { ...requests, ...asked } }
    return { ...container, resources }
  }
  const { initContainers } = pod.spec
  const containers = pod.spec.containers.map(filled('container'))
  const inits = initContainers?.map(filled('init container'))
  if (set.length === 0) return pod
  const annotations = { ...pod.metadata.annotations, [annotation]: `LimitRanger plugin set: ${set.join('; ')}` }
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations },
    spec: { ...pod.spec, containers, ...(inits && { initContainers: inits }) },
  }
}

function violations(item: LimitRangeItem, requests: ResourceAmounts, limits: ResourceAmounts): readonly string[] {
  const { type = '', min = {}, max = {}, maxLimitRequestRatio = {} } = item
  const each = (amounts: ResourceAmounts, check: Check) => eachAmount(type, amounts, requests, limits, check)
  return [...each(min, belowMinimum), ...each(max, aboveMaximum), ...each(maxLimitRequestRatio, aboveRatio)]
}

type Check = (facts: Facts) => string | undefined

function eachAmount(
  type: string,
  amounts: ResourceAmounts,
  requests: ResourceAmounts,
  limits: ResourceAmounts,
  check: Check,
): readonly string[] {
  return Object.entries(amounts).flatMap(([name, bound]) => {
    const facts = { name, type, bound, request: amountNamed(requests, name), limit: amountNamed(limits, name) }
    return check(facts) ?? []
  })
}

type Facts = {
  /** Name of the resource. */
  readonly name: string
  /** Type of the limit: `Container`, `Pod` or `PersistentVolumeClaim`. */
  readonly type: string
  readonly bound: QuantityLike
  readonly request: QuantityLike | undefined
  readonly limit: QuantityLike | undefined
}

function belowMinimum({ name, type, bound, request, limit }: Facts): string | undefined {
  const what = `minimum ${name} usage per ${type} is ${formatQuantity(bound)}`
  if (request === undefined) return `${what}.  No request is specified`
  if (compareQuantities(request, bound) < 0) return `${what}, but request is ${formatQuantity(request)}`
  if (limit === undefined || compareQuantities(limit, bound) >= 0) return undefined
  return `${what}, but limit is ${formatQuantity(limit)}`
}

function aboveMaximum({ name, type, bound, request, limit }: Facts): string | undefined {
  const what = `maximum ${name} usage per ${type} is ${formatQuantity(bound)}`
  if (limit === undefined) return `${what}.  No limit is specified`
  if (compareQuantities(limit, bound) > 0) return `${what}, but limit is ${formatQuantity(limit)}`
  if (request === undefined || compareQuantities(request, bound) <= 0) return undefined
  return `${what}, but request is ${formatQuantity(request)}`
}

/** What claims ask for is all that they get: they have no limits (maxRequestConstraint). */
function aboveRequestMaximum({ name, type, bound, request }: Facts): string | undefined {
  const what = `maximum ${name} usage per ${type} is ${formatQuantity(bound)}`
  if (request === undefined) return `${what}.  No request is specified`
  return compareQuantities(request, bound) > 0 ? `${what}, but request is ${formatQuantity(request)}` : undefined
}

function aboveRatio({ name, type, bound, request, limit }: Facts): string | undefined {
  const what = `${name} max limit to request ratio per ${type} is ${formatQuantity(bound)}`
  if (isNothing(request)) return `${what}, but no request is specified or request is 0`
  if (isNothing(limit)) return `${what}, but no limit is specified or limit is 0`
  const ratio = milliValue(limit) / milliValue(request)
  return ratio * 1000 > milliValue(bound) ? `${what}, but provided ratio is ${ratio.toFixed(6)}` : undefined
}

function isNothing(amount: QuantityLike | undefined): amount is undefined {
  return amount === undefined || compareQuantities(amount, zeroQuantity) === 0
}
