/** autoscaling/v2 HorizontalPodAutoscaler: how many replicas a workload has, by what its pods use. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import {
  type Described,
  field,
  integer,
  list,
  listBy,
  object,
  oneOf,
  optional,
  pointer,
  quantity,
  type TSchema,
  text,
  time,
} from '../schema.ts'

/** The message has the same fields and numbers in both versions. `version`: of the group, in the names of types. */
export const crossVersionObjectReference = (version: 'v1' | 'v2') =>
  object(`autoscaling.${version}.CrossVersionObjectReference`, {
    kind: field(1, optional(text)),
    name: field(2, optional(text)),
    apiVersion: field(3, optional(text)),
  })

const ReferenceSchema = crossVersionObjectReference('v2')
export type CrossVersionObjectReference = Described<typeof ReferenceSchema>

const MetricIdentifierSchema = object('autoscaling.v2.MetricIdentifier', {
  name: field(1, optional(text)),
  selector: pointer(2, optional(LabelSelectorSchema)),
})
export type MetricIdentifier = Described<typeof MetricIdentifierSchema>

const MetricTargetSchema = object('autoscaling.v2.MetricTarget', {
  type: field(1, optional(text)),
  value: pointer(2, optional(quantity)),
  averageValue: pointer(3, optional(quantity)),
  averageUtilization: pointer(4, optional(integer)),
})
export type MetricTarget = Described<typeof MetricTargetSchema>

const MetricValueStatusSchema = object('autoscaling.v2.MetricValueStatus', {
  value: pointer(1, optional(quantity)),
  averageValue: pointer(2, optional(quantity)),
  averageUtilization: pointer(3, optional(integer)),
})
export type MetricValueStatus = Described<typeof MetricValueStatusSchema>

/** A field of a struct that is not a pointer: absent, it is the empty struct. */
const part = <S extends TSchema>(number: number, schema: S) => field(number, optional(schema))

const MetricSpecSchema = object('autoscaling.v2.MetricSpec', {
  type: field(1, optional(text)),
  object: pointer(
    2,
    optional(
      object('autoscaling.v2.ObjectMetricSource', {
        describedObject: part(1, ReferenceSchema),
        target: part(2, MetricTargetSchema),
        metric: part(3, MetricIdentifierSchema),
      }),
    ),
  ),
  pods: pointer(
    3,
    optional(
      object('autoscaling.v2.PodsMetricSource', {
        metric: part(1, MetricIdentifierSchema),
        target: part(2, MetricTargetSchema),
      }),
    ),
  ),
  resource: pointer(
    4,
    optional(
      object('autoscaling.v2.ResourceMetricSource', {
        name: field(1, optional(text)),
        target: part(2, MetricTargetSchema),
      }),
    ),
  ),
  containerResource: pointer(
    7,
    optional(
      object('autoscaling.v2.ContainerResourceMetricSource', {
        name: field(1, optional(text)),
        target: part(2, MetricTargetSchema),
        container: field(3, optional(text)),
      }),
    ),
  ),
  external: pointer(
    5,
    optional(
      object('autoscaling.v2.ExternalMetricSource', {
        metric: part(1, MetricIdentifierSchema),
        target: part(2, MetricTargetSchema),
      }),
    ),
  ),
})
export type MetricSpec = Described<typeof MetricSpecSchema>

const MetricStatusSchema = object('autoscaling.v2.MetricStatus', {
  type: field(1, optional(text)),
  object: pointer(
    2,
    optional(
      object('autoscaling.v2.ObjectMetricStatus', {
        metric: part(1, MetricIdentifierSchema),
        current: part(2, MetricValueStatusSchema),
        describedObject: part(3, ReferenceSchema),
      }),
    ),
  ),
  pods: pointer(
    3,
    optional(
      object('autoscaling.v2.PodsMetricStatus', {
        metric: part(1, MetricIdentifierSchema),
        current: part(2, MetricValueStatusSchema),
      }),
    ),
  ),
  resource: pointer(
    4,
    optional(
      object('autoscaling.v2.ResourceMetricStatus', {
        name: field(1, optional(text)),
        current: part(2, MetricValueStatusSchema),
      }),
    ),
  ),
  containerResource: pointer(
    7,
    optional(
      object('autoscaling.v2.ContainerResourceMetricStatus', {
        name: field(1, optional(text)),
        current: part(2, MetricValueStatusSchema),
        container: field(3, optional(text)),
      }),
    ),
  ),
  external: pointer(
    5,
    optional(
      object('autoscaling.v2.ExternalMetricStatus', {
        metric: part(1, MetricIdentifierSchema),
        current: part(2, MetricValueStatusSchema),
      }),
    ),
  ),
})
export type MetricStatus = Described<typeof MetricStatusSchema>

const ScalingRulesSchema = object('autoscaling.v2.HPAScalingRules', {
  stabilizationWindowSeconds: pointer(3, optional(integer)),
  selectPolicy: pointer(1, optional(text)),
  policies: field(
    2,
    optional(
      list(
        object('autoscaling.v2.HPAScalingPolicy', {
          type: field(1, optional(text)),
          value: field(2, optional(integer)),
          periodSeconds: field(3, optional(integer)),
        }),
      ),
    ),
  ),
})
export type ScalingRules = Described<typeof ScalingRulesSchema>
export type ScalingPolicy = NonNullable<ScalingRules['policies']>[number]

export const ScalingBehaviorSchema = object('autoscaling.v2.HorizontalPodAutoscalerBehavior', {
  scaleUp: pointer(1, optional(ScalingRulesSchema)),
  scaleDown: pointer(2, optional(ScalingRulesSchema)),
})
export type ScalingBehavior = Described<typeof ScalingBehaviorSchema>

/** The message has the same fields and numbers in both versions. */
export const autoscalerCondition = (version: 'v1' | 'v2') =>
  object(`autoscaling.${version}.HorizontalPodAutoscalerCondition`, {
    type: field(1, text),
    status: field(2, text),
    lastTransitionTime: field(3, optional(time)),
    reason: field(4, optional(text)),
    message: field(5, optional(text)),
  })

const ConditionSchema = autoscalerCondition('v2')
export type AutoscalerCondition = Described<typeof ConditionSchema>

const StatusSchema = object('autoscaling.v2.HorizontalPodAutoscalerStatus', {
  observedGeneration: pointer(1, optional(integer)),
  lastScaleTime: pointer(2, optional(time)),
  currentReplicas: field(3, optional(integer)),
  desiredReplicas: field(4, optional(integer)),
  currentMetrics: field(5, optional(list(MetricStatusSchema))),
  conditions: field(6, optional(listBy('type', ConditionSchema))),
})
export type AutoscalerStatus = Described<typeof StatusSchema>

const SpecSchema = object('autoscaling.v2.HorizontalPodAutoscalerSpec', {
  scaleTargetRef: field(1, optional(ReferenceSchema)),
  minReplicas: pointer(2, optional(integer)),
  maxReplicas: field(3, optional(integer)),
  metrics: field(4, optional(list(MetricSpecSchema))),
  behavior: pointer(5, optional(ScalingBehaviorSchema)),
})
export type AutoscalerSpec = Described<typeof SpecSchema>

export const HorizontalPodAutoscalerSchema = object({
  apiVersion: oneOf('autoscaling/v2'),
  kind: oneOf('HorizontalPodAutoscaler'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, SpecSchema),
  status: field(3, optional(StatusSchema)),
})
export type HorizontalPodAutoscaler = Described<typeof HorizontalPodAutoscalerSchema>
