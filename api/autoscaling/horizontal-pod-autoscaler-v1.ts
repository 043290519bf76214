/** autoscaling/v1 HorizontalPodAutoscaler: one target for CPU; what else version 2 has is in annotations. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import {
  type Described,
  field,
  integer,
  list,
  object,
  oneOf,
  optional,
  pointer,
  quantity,
  text,
  time,
} from '../schema.ts'
import { autoscalerCondition, crossVersionObjectReference } from './horizontal-pod-autoscaler.ts'

export const HorizontalPodAutoscalerV1Schema = object({
  apiVersion: oneOf('autoscaling/v1'),
  kind: oneOf('HorizontalPodAutoscaler'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    object('autoscaling.v1.HorizontalPodAutoscalerSpec', {
      scaleTargetRef: field(1, optional(crossVersionObjectReference('v1'))),
      minReplicas: pointer(2, optional(integer)),
      maxReplicas: field(3, optional(integer)),
      targetCPUUtilizationPercentage: pointer(4, optional(integer)),
    }),
  ),
  status: field(
    3,
    optional(
      object('autoscaling.v1.HorizontalPodAutoscalerStatus', {
        observedGeneration: pointer(1, optional(integer)),
        lastScaleTime: pointer(2, optional(time)),
        currentReplicas: field(3, optional(integer)),
        desiredReplicas: field(4, optional(integer)),
        currentCPUUtilizationPercentage: pointer(5, optional(integer)),
      }),
    ),
  ),
})
export type HorizontalPodAutoscalerV1 = Described<typeof HorizontalPodAutoscalerV1Schema>

/** The annotations (pkg/apis/autoscaling/annotations.go). They are part of this version only, and never stored. */
export const autoscalerAnnotations = {
  metrics: 'autoscaling.alpha.kubernetes.io/metrics',
  currentMetrics: 'autoscaling.alpha.kubernetes.io/current-metrics',
  conditions: 'autoscaling.alpha.kubernetes.io/conditions',
  behavior: 'autoscaling.alpha.kubernetes.io/behavior',
} as const

const reference = optional(crossVersionObjectReference('v1'))
const selector = optional(LabelSelectorSchema)
const amount = optional(quantity)

/** Value of the annotation `metrics`. */
export const MetricSpecsV1Schema = list(
  object({
    type: optional(text),
    object: optional(
      object({ target: reference, metricName: optional(text), targetValue: amount, selector, averageValue: amount }),
    ),
    pods: optional(object({ metricName: optional(text), targetAverageValue: amount, selector })),
    resource: optional(
      object({ name: optional(text), targetAverageUtilization: optional(integer), targetAverageValue: amount }),
    ),
    containerResource: optional(
      object({
        name: optional(text),
        targetAverageUtilization: optional(integer),
        targetAverageValue: amount,
        container: optional(text),
      }),
    ),
    external: optional(
      object({
        metricName: optional(text),
        metricSelector: selector,
        targetValue: amount,
        targetAverageValue: amount,
      }),
    ),
  }),
)
export type MetricSpecV1 = Described<typeof MetricSpecsV1Schema>[number]

/** Value of the annotation `current-metrics`. */
export const MetricStatusesV1Schema = list(
  object({
    type: optional(text),
    object: optional(
      object({ target: reference, metricName: optional(text), currentValue: amount, selector, averageValue: amount }),
    ),
    pods: optional(object({ metricName: optional(text), currentAverageValue: amount, selector })),
    resource: optional(
      object({ name: optional(text), currentAverageUtilization: optional(integer), currentAverageValue: amount }),
    ),
    containerResource: optional(
      object({
        name: optional(text),
        currentAverageUtilization: optional(integer),
        currentAverageValue: amount,
        container: optional(text),
      }),
    ),
    external: optional(
      object({
        metricName: optional(text),
        metricSelector: selector,
        currentValue: amount,
        currentAverageValue: amount,
      }),
    ),
  }),
)
export type MetricStatusV1 = Described<typeof MetricStatusesV1Schema>[number]

/** Value of the annotation `conditions`. */
export const AutoscalerConditionsV1Schema = list(autoscalerCondition('v1'))
