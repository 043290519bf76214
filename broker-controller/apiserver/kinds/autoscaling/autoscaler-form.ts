/**
 * HorizontalPodAutoscalers as autoscaling/v1 shows them (pkg/apis/autoscaling/v1/conversion.go): the first target for the
 * utilization of CPU is a field, everything else that version 2 has is JSON in annotations.
 */
import {
  type HorizontalPodAutoscaler,
  type MetricSpec,
  type ScalingBehavior,
  ScalingBehaviorSchema,
  type ScalingRules,
} from '../../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import {
  AutoscalerConditionsV1Schema,
  autoscalerAnnotations,
  type HorizontalPodAutoscalerV1,
  MetricSpecsV1Schema,
  MetricStatusesV1Schema,
} from '../../../../api/autoscaling/horizontal-pod-autoscaler-v1.ts'
import { decode } from '../../../../api/decode.ts'
import type { ObjectMeta } from '../../../../api/meta.ts'
import type { Described, TSchema } from '../../../../api/schema.ts'
import { isObject } from '../../../../api/text/json.ts'
import { isIntricate } from '../../wire/body-limits.ts'
import { metricSpecOfV1, metricSpecV1Of, metricStatusOfV1, metricStatusV1Of } from './metrics-v1.ts'

/** AverageUtilization of CPU where an author names no metric (DefaultCPUUtilization). */
const defaultUtilization = 80

/** The metric of an author who names none. */
export const defaultMetric = cpuUtilization(defaultUtilization)

export function autoscalerV1Of(autoscaler: HorizontalPodAutoscaler): HorizontalPodAutoscalerV1 {
  const { spec, status, metadata } = autoscaler
  const { metrics = [], behavior, ...same } = spec
  const { currentMetrics = [], conditions = [], ...counts } = status ?? {}
  const target = metrics.find(isCpuUtilization)?.resource?.target?.averageUtilization
  const current = currentMetrics
    .map(({ type, resource }) => (type === 'Resource' && resource?.name === 'cpu' ? resource.current : undefined))
    .findLast((one) => one?.averageUtilization !== undefined)?.averageUtilization
  const others = metrics.filter((metric) => !isCpuUtilization(metric))
  const annotations = {
    ...withoutOurs(metadata).annotations,
    ...(others.length > 0 && { [autoscalerAnnotations.metrics]: JSON.stringify(others.map(metricSpecV1Of)) }),
    ...(currentMetrics.length > 0 && {
      [autoscalerAnnotations.currentMetrics]: JSON.stringify(currentMetrics.map(metricStatusV1Of)),
    }),
    ...(behavior && { [autoscalerAnnotations.behavior]: behaviorText(behavior) }),
    ...(conditions.length > 0 && { [autoscalerAnnotations.conditions]: JSON.stringify(conditions) }),
  }
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'HorizontalPodAutoscaler',
    metadata: { ...withoutOurs(metadata), ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: { ...same, ...(target !== undefined && { targetCPUUtilizationPercentage: target }) },
    status: {
      ...counts,
      currentReplicas: counts.currentReplicas ?? 0,
      desiredReplicas: counts.desiredReplicas ?? 0,
      ...(current !== undefined && { currentCPUUtilizationPercentage: current }),
    },
  }
}

/** An annotation that cannot be read counts as absent, as in Kubernetes. */
export function autoscalerOfV1(autoscaler: HorizontalPodAutoscalerV1): HorizontalPodAutoscaler {
  const { metadata, spec, status } = autoscaler
  const { targetCPUUtilizationPercentage: target, ...same } = spec
  const { currentCPUUtilizationPercentage: current, ...counts } = status ?? {}
  const { annotations } = metadata
  const others = annotated(annotations, 'metrics', MetricSpecsV1Schema)?.map(metricSpecOfV1) ?? []
  const metrics = [...others, ...(target === undefined ? [] : [cpuUtilization(target)])]
  const behavior = annotated(annotations, 'behavior', ScalingBehaviorSchema, withFieldNames)
  const hasBehavior = behavior?.scaleUp !== undefined || behavior?.scaleDown !== undefined
  const currentMetrics =
    annotated(annotations, 'currentMetrics', MetricStatusesV1Schema)?.map(metricStatusOfV1) ??
    (current === undefined
      ? undefined
      : [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: current } } }])
  const conditions = annotated(annotations, 'conditions', AutoscalerConditionsV1Schema)
  return {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: withoutOurs(metadata),
    spec: { ...same, metrics: metrics.length > 0 ? metrics : [defaultMetric], ...(hasBehavior && { behavior }) },
    ...(status && {
      status: { ...counts, ...(currentMetrics && { currentMetrics }), ...(conditions && { conditions }) },
    }),
  }
}

/** Without the annotations of version 1 (DropRoundTripHorizontalPodAutoscalerAnnotations). */
export function withoutOurs(metadata: ObjectMeta): ObjectMeta {
  const { annotations, ...rest } = metadata
  if (annotations === undefined) return metadata
  const names: readonly string[] = Object.values(autoscalerAnnotations)
  const kept = Object.entries(annotations).filter(([name]) => !names.includes(name))
  if (kept.length === Object.keys(annotations).length) return metadata
  return { ...rest, ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }) }
}

function isCpuUtilization({ type, resource }: MetricSpec): boolean {
  return type === 'Resource' && resource?.name === 'cpu' && resource.target?.averageUtilization !== undefined
}

function cpuUtilization(averageUtilization: number): MetricSpec {
  return { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } }
}

function annotated<const S extends TSchema>(
  annotations: ObjectMeta['annotations'],
  name: keyof typeof autoscalerAnnotations,
  schema: S,
  prepared: (value: unknown) => unknown = (value) => value,
): Described<S> | undefined {
  const text = annotations?.[autoscalerAnnotations[name]]
  if (text === undefined) return undefined
  try {
    if (isIntricate(Buffer.from(text))) return undefined
    const decoded = decode(schema, prepared(JSON.parse(text)))
    return decoded.ok ? decoded.value : undefined
  } catch {
    return undefined
  }
}

/** With the names of the fields in Go, and null for what is absent: Kubernetes writes its internal type. */
function behaviorText({ scaleUp, scaleDown }: ScalingBehavior): string {
  const rules = (given: ScalingRules | undefined) =>
    given === undefined
      ? null
      : {
          StabilizationWindowSeconds: given.stabilizationWindowSeconds ?? null,
          SelectPolicy: given.selectPolicy ?? null,
          Policies:
            given.policies?.map(({ type = '', value = 0, periodSeconds = 0 }) => ({
              Type: type,
              Value: value,
              PeriodSeconds: periodSeconds,
            })) ?? null,
        }
  return JSON.stringify({ ScaleUp: rules(scaleUp), ScaleDown: rules(scaleDown) })
}

const behaviorFields = new Map(
  [
    'scaleUp',
    'scaleDown',
    'stabilizationWindowSeconds',
    'selectPolicy',
    'policies',
    'type',
    'value',
    'periodSeconds',
  ].map((name) => [name.toLowerCase(), name]),
)
const behaviorLevels = 4

/** Go reads names of fields in capitals or not. */
function withFieldNames(value: unknown, levels = behaviorLevels): unknown {
  if (levels === 0) return value
  if (Array.isArray(value)) return value.map((item) => withFieldNames(item, levels - 1))
  if (!isObject(value)) return value
  const named = Object.entries(value).map(([name, item]) => [
    behaviorFields.get(name.toLowerCase()) ?? name,
    withFieldNames(item, levels - 1),
  ])
  return Object.fromEntries(named)
}
