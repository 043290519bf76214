/** Validates HorizontalPodAutoscalers (pkg/apis/autoscaling/validation/validation.go; messages as there). */
import type {
  AutoscalerSpec,
  CrossVersionObjectReference,
  HorizontalPodAutoscaler,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
  ScalingPolicy,
  ScalingRules,
} from '../../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import { containerResourceProblems } from '../../../../api/limits/resource-names.ts'
import { dnsLabelProblem } from '../../../../api/names.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import { compareQuantities } from '../../../../api/quantity.ts'
import { pathSegmentProblems, problemsWith } from '../../../../api/validation/metadata-validation.ts'
import { countProblems } from '../../../../api/validation/workload-validation.ts'

const largestInt32 = 2 ** 31 - 1
const mostPeriodSeconds = 1800
const mostWindowSeconds = 3600
const selectPolicies = ['Disabled', 'Max', 'Min']
const policyTypes = ['Percent', 'Pods']
/** The type of a metric, and the field that describes it. */
const sources = {
  ContainerResource: 'containerResource',
  External: 'external',
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
} as const
const sourceTypes = Object.keys(sources)

export function newAutoscalerProblems({ spec }: HorizontalPodAutoscaler): readonly Problem[] {
  return specProblems(spec, 1)
}

/** One that scales to zero already may go on to; without the feature HPAScaleToZero a new one may not. */
export function autoscalerChangeProblems(
  old: HorizontalPodAutoscaler,
  { spec }: HorizontalPodAutoscaler,
): readonly Problem[] {
  return specProblems(spec, old.spec.minReplicas === 0 ? 0 : 1)
}

export function autoscalerStatusProblems({ status = {} }: HorizontalPodAutoscaler): readonly Problem[] {
  return [
    ...countProblems('status.currentReplicas', status.currentReplicas),
    ...countProblems('status.desiredReplicas', status.desiredReplicas),
  ]
}

function specProblems(spec: AutoscalerSpec, least: number): readonly Problem[] {
  const { scaleTargetRef = {}, minReplicas, maxReplicas = 0, metrics = [], behavior } = spec
  const isBelow = minReplicas !== undefined && maxReplicas < minReplicas
  const scalesToZero = minReplicas === 0 && !metrics.some(({ type }) => type === 'Object' || type === 'External')
  const forZero = 'must specify at least one Object or External metric to support scaling to zero replicas'
  return [
    ...(minReplicas !== undefined && minReplicas < least
      ? [invalid('spec.minReplicas', minReplicas, `must be greater than or equal to ${least}`)]
      : []),
    ...(maxReplicas < 1 ? [invalid('spec.maxReplicas', maxReplicas, 'must be greater than 0')] : []),
    ...tooLarge('spec.maxReplicas', maxReplicas),
    ...(isBelow ? [invalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to `minReplicas`')] : []),
    ...objectReferenceProblems('spec.scaleTargetRef', scaleTargetRef),
    ...metrics.flatMap((metric, index) => metricProblems(`spec.metrics[${index}]`, metric)),
    ...(scalesToZero ? [forbidden('spec.metrics', forZero)] : []),
    ...(behavior?.scaleUp ? rulesProblems('spec.behavior.scaleUp', behavior.scaleUp) : []),
    ...(behavior?.scaleDown ? rulesProblems('spec.behavior.scaleDown', behavior.scaleDown) : []),
  ]
}

/** In Go such a number is not decoded. */
function tooLarge(field: string, count: number | undefined): readonly Problem[] {
  return count !== undefined && count > largestInt32
    ? [invalid(field, count, `must be less than or equal to ${largestInt32}`)]
    : []
}

function objectReferenceProblems(field: string, { kind = '', name = '' }: CrossVersionObjectReference) {
  return [...pathSegmentProblems(`${field}.kind`, kind), ...pathSegmentProblems(`${field}.name`, name)]
}

function rulesProblems(field: string, rules: ScalingRules): readonly Problem[] {
  const { stabilizationWindowSeconds: seconds, selectPolicy, policies = [] } = rules
  const at = `${field}.stabilizationWindowSeconds`
  return [
    ...(seconds !== undefined && seconds < 0 ? [invalid(at, seconds, 'must be greater than or equal to zero')] : []),
    ...(seconds !== undefined && seconds > mostWindowSeconds
      ? [invalid(at, seconds, `must be less than or equal to ${mostWindowSeconds}`)]
      : []),
    ...(selectPolicy !== undefined && !selectPolicies.includes(selectPolicy)
      ? [notSupported(`${field}.selectPolicy`, selectPolicy, selectPolicies)]
      : []),
    ...(policies.length === 0 ? [required(`${field}.policies`, 'must specify at least one Policy')] : []),
    ...policies.flatMap((policy, index) => policyProblems(`${field}.policies[${index}]`, policy)),
  ]
}

function policyProblems(field: string, { type = '', value = 0, periodSeconds = 0 }: ScalingPolicy): readonly Problem[] {
  const at = `${field}.periodSeconds`
  return [
    ...(policyTypes.includes(type) ? [] : [notSupported(`${field}.type`, type, policyTypes)]),
    ...(value <= 0 ? [invalid(`${field}.value`, value, 'must be greater than zero')] : []),
    ...tooLarge(`${field}.value`, value),
    ...(periodSeconds <= 0 ? [invalid(at, periodSeconds, 'must be greater than zero')] : []),
    ...(periodSeconds > mostPeriodSeconds
      ? [invalid(at, periodSeconds, `must be less than or equal to ${mostPeriodSeconds}`)]
      : []),
  ]
}

/** Only the first given source is checked; the others are forbidden. */
function metricProblems(field: string, metric: MetricSpec): readonly Problem[] {
  const { type = '' } = metric
  const isKnown = (text: string): text is keyof typeof sources => Object.hasOwn(sources, text)
  const unknown = isKnown(type) ? [] : [notSupported(`${field}.type`, type, sourceTypes)]
  const expected = isKnown(type) ? sources[type] : undefined
  const order = ['object', 'external', 'pods', 'resource', 'containerResource'] as const
  const given = order.filter((source) => metric[source] !== undefined)
  const isMissing = expected !== undefined && metric[expected] === undefined
  return [
    ...(type === '' ? [required(`${field}.type`, 'must specify a metric source type')] : []),
    ...unknown,
    ...sourceProblems(field, metric, given[0]),
    ...(isMissing ? [required(`${field}.${expected}`, 'must populate information for the given metric source')] : []),
    ...unknown,
    ...(given.length === 1 ? [] : given.filter((source) => source !== expected)).map((source) =>
      forbidden(`${field}.${source}`, 'must populate the given metric source only'),
    ),
  ]
}

type Source = (typeof sources)[keyof typeof sources]

function sourceProblems(parent: string, metric: MetricSpec, source: Source | undefined): readonly Problem[] {
  if (source === undefined) return []
  const field = `${parent}.${source}`
  const target = metric[source]?.target ?? {}
  const targets = targetProblems(`${field}.target`, target)
  switch (source) {
    case 'object':
      return [
        ...objectReferenceProblems(`${field}.describedObject`, metric.object?.describedObject ?? {}),
        ...identifierProblems(`${field}.metric`, metric.object?.metric ?? {}),
        ...targets,
        ...noneOf(field, target, 'value', 'averageValue', 'must set either a target value or averageValue'),
      ]
    case 'external':
      return [
        ...identifierProblems(`${field}.metric`, metric.external?.metric ?? {}),
        ...targets,
        ...noneOf(
          field,
          target,
          'value',
          'averageValue',
          'must set either a target value for metric or a per-pod target',
        ),
        ...(target.value !== undefined && target.averageValue !== undefined
          ? [forbidden(`${field}.target.value`, 'may not set both a target value for metric and a per-pod target')]
          : []),
      ]
    case 'pods':
      return [
        ...identifierProblems(`${field}.metric`, metric.pods?.metric ?? {}),
        ...targets,
        ...noneOf(field, target, 'averageValue', 'averageValue', 'must specify a positive target averageValue'),
      ]
    case 'resource':
      return [
        ...(metric.resource?.name ? [] : [required(`${field}.name`, 'must specify a resource name')]),
        ...targets,
        ...oneUsage(field, target),
      ]
    case 'containerResource':
      return [...containerSourceProblems(field, metric.containerResource ?? {}), ...targets, ...oneUsage(field, target)]
  }
}

function containerSourceProblems(
  field: string,
  { name = '', container = '' }: Partial<NonNullable<MetricSpec['containerResource']>>,
): readonly Problem[] {
  return [
    ...(name === ''
      ? [required(`${field}.name`, 'must specify a resource name')]
      : containerResourceProblems(`${field}.name`, name)),
    ...(container === ''
      ? [required(`${field}.container`, 'must specify a container')]
      : problemsWith(`${field}.container`, container, dnsLabelProblem)),
  ]
}

function noneOf(
  field: string,
  target: MetricTarget,
  first: 'value' | 'averageValue' | 'averageUtilization',
  named: 'averageValue' | 'averageUtilization',
  because: string,
): readonly Problem[] {
  const isSet = target[first] !== undefined || target.averageValue !== undefined
  return isSet ? [] : [required(`${field}.target.${named}`, because)]
}

function oneUsage(field: string, target: MetricTarget): readonly Problem[] {
  const { averageUtilization, averageValue } = target
  const because = 'must set either a target raw value or a target utilization'
  const isBoth = averageUtilization !== undefined && averageValue !== undefined
  return [
    ...noneOf(field, target, 'averageUtilization', 'averageUtilization', because),
    ...(isBoth
      ? [forbidden(`${field}.target.averageValue`, 'may not set both a target raw value and a target utilization')]
      : []),
  ]
}

function targetProblems(field: string, target: MetricTarget): readonly Problem[] {
  const { type = '', value, averageValue, averageUtilization } = target
  const isKnown = ['Utilization', 'Value', 'AverageValue'].includes(type)
  const isPositive = (amount: string | number | undefined) => amount === undefined || compareQuantities(amount, 0) > 0
  return [
    ...(type === '' ? [required(`${field}.type`, 'must specify a metric target type')] : []),
    ...(isKnown ? [] : [invalid(`${field}.type`, type, 'must be either Utilization, Value, or AverageValue')]),
    ...(isPositive(value) ? [] : [invalid(`${field}.value`, value, 'must be positive')]),
    ...(isPositive(averageValue) ? [] : [invalid(`${field}.averageValue`, averageValue, 'must be positive')]),
    ...(averageUtilization !== undefined && averageUtilization < 1
      ? [invalid(`${field}.averageUtilization`, averageUtilization, 'must be greater than 0')]
      : []),
    ...tooLarge(`${field}.averageUtilization`, averageUtilization),
  ]
}

function identifierProblems(field: string, { name = '' }: MetricIdentifier): readonly Problem[] {
  return pathSegmentProblems(`${field}.name`, name, 'must specify a metric name')
}
