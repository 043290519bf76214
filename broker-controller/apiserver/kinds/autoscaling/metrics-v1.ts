/** Metrics as autoscaling/v1 writes them in annotations (pkg/apis/autoscaling/v1/conversion.go). */
import type {
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from '../../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import type { MetricSpecV1, MetricStatusV1 } from '../../../../api/autoscaling/horizontal-pod-autoscaler-v1.ts'
import { compareQuantities, type QuantityLike } from '../../../../api/quantity.ts'

export function metricSpecV1Of({
  type,
  object,
  pods,
  resource,
  containerResource,
  external,
}: MetricSpec): MetricSpecV1 {
  return given({
    type: type ?? '',
    object:
      object &&
      given({
        target: object.describedObject ?? {},
        metricName: object.metric?.name ?? '',
        targetValue: object.target?.value ?? '0',
        selector: object.metric?.selector,
        averageValue: object.target?.averageValue,
      }),
    pods:
      pods &&
      given({
        metricName: pods.metric?.name ?? '',
        targetAverageValue: pods.target?.averageValue ?? '0',
        selector: pods.metric?.selector,
      }),
    resource: resource && given({ name: resource.name ?? '', ...targetV1(resource.target) }),
    containerResource:
      containerResource &&
      given({
        name: containerResource.name ?? '',
        ...targetV1(containerResource.target),
        container: containerResource.container ?? '',
      }),
    external:
      external &&
      given({
        metricName: external.metric?.name ?? '',
        metricSelector: external.metric?.selector,
        targetValue: external.target?.value,
        targetAverageValue: external.target?.averageValue,
      }),
  })
}

export function metricSpecOfV1({
  type,
  object,
  pods,
  resource,
  containerResource,
  external,
}: MetricSpecV1): MetricSpec {
  return given({
    type,
    object: object && {
      describedObject: object.target ?? {},
      target: given({
        type: object.averageValue === undefined ? 'Value' : 'AverageValue',
        value: besideAverage(object.targetValue, object.averageValue),
        averageValue: object.averageValue,
      }),
      metric: given({ name: object.metricName, selector: object.selector }),
    },
    pods: pods && {
      metric: given({ name: pods.metricName, selector: pods.selector }),
      target: { type: 'AverageValue', averageValue: pods.targetAverageValue ?? '0' },
    },
    resource: resource && given({ name: resource.name, target: targetOfV1(resource) }),
    containerResource:
      containerResource &&
      given({
        name: containerResource.name,
        target: targetOfV1(containerResource),
        container: containerResource.container,
      }),
    external: external && {
      metric: given({ name: external.metricName, selector: external.metricSelector }),
      target: given({
        type: external.targetValue === undefined ? 'AverageValue' : 'Value',
        value: external.targetValue,
        averageValue: external.targetAverageValue,
      }),
    },
  })
}

export function metricStatusV1Of(status: MetricStatus): MetricStatusV1 {
  const { type, object, pods, resource, containerResource, external } = status
  return given({
    type: type ?? '',
    object:
      object &&
      given({
        target: object.describedObject ?? {},
        metricName: object.metric?.name ?? '',
        currentValue: object.current?.value ?? '0',
        selector: object.metric?.selector,
        averageValue: object.current?.averageValue,
      }),
    pods:
      pods &&
      given({
        metricName: pods.metric?.name ?? '',
        currentAverageValue: pods.current?.averageValue ?? '0',
        selector: pods.metric?.selector,
      }),
    resource: resource && given({ name: resource.name ?? '', ...currentV1(resource.current) }),
    containerResource:
      containerResource &&
      given({
        name: containerResource.name ?? '',
        ...currentV1(containerResource.current),
        container: containerResource.container ?? '',
      }),
    external: external && externalStatusV1(external),
  })
}

function externalStatusV1({ metric, current }: NonNullable<MetricStatus['external']>) {
  return given({
    metricName: metric?.name ?? '',
    metricSelector: metric?.selector,
    currentValue: current?.value ?? '0',
    currentAverageValue: current?.averageValue,
  })
}

export function metricStatusOfV1(status: MetricStatusV1): MetricStatus {
  const { type, object, pods, resource, containerResource, external } = status
  return given({
    type: type ?? '',
    object: object && {
      metric: given({ name: object.metricName, selector: object.selector }),
      current: given({
        value: besideAverage(object.currentValue, object.averageValue),
        averageValue: object.averageValue,
      }),
      describedObject: object.target ?? {},
    },
    pods: pods && {
      metric: given({ name: pods.metricName, selector: pods.selector }),
      current: { averageValue: pods.currentAverageValue ?? '0' },
    },
    resource: resource && given({ name: resource.name, current: currentOfV1(resource) }),
    containerResource:
      containerResource &&
      given({
        name: containerResource.name,
        current: currentOfV1(containerResource),
        container: containerResource.container,
      }),
    external: external && {
      metric: given({ name: external.metricName, selector: external.metricSelector }),
      current: given({
        value: besideAverage(external.currentValue, external.currentAverageValue),
        averageValue: external.currentAverageValue,
      }),
    },
  })
}

type ResourceV1 = NonNullable<MetricSpecV1['resource']>
type ResourceStatusV1 = NonNullable<MetricStatusV1['resource']>

function targetV1({ averageUtilization, averageValue }: MetricTarget = {}) {
  return { targetAverageUtilization: averageUtilization, targetAverageValue: averageValue }
}

function targetOfV1({ targetAverageUtilization, targetAverageValue }: ResourceV1): MetricTarget {
  return given({
    type: targetAverageUtilization === undefined ? 'AverageValue' : 'Utilization',
    averageValue: targetAverageValue,
    averageUtilization: targetAverageUtilization,
  })
}

function currentV1({ averageUtilization, averageValue }: MetricValueStatus = {}) {
  return { currentAverageUtilization: averageUtilization, currentAverageValue: averageValue ?? '0' }
}

function currentOfV1({ currentAverageUtilization, currentAverageValue = '0' }: ResourceStatusV1): MetricValueStatus {
  return given({ averageValue: currentAverageValue, averageUtilization: currentAverageUtilization })
}

/** Version 1 cannot leave this value out: beside an average, zero stands for none. */
function besideAverage<Q extends QuantityLike>(value: Q | undefined, average: QuantityLike | undefined) {
  if (average === undefined) return value ?? '0'
  return value === undefined || compareQuantities(value, 0) === 0 ? undefined : value
}

/** Without the fields that are undefined, which JSON does not have. */
function given<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}
