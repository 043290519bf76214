/** autoscaling/v2 HorizontalPodAutoscaler, and the same objects as autoscaling/v1 (pkg/registry/autoscaling/horizontalpodautoscaler). */
import type {
  HorizontalPodAutoscaler,
  ScalingBehavior,
  ScalingRules,
} from '../../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import type { HorizontalPodAutoscalerV1 } from '../../../../api/autoscaling/horizontal-pod-autoscaler-v1.ts'
import { otherForms, resources } from '../../../../api/resources.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { autoscalerOfV1, autoscalerV1Of, defaultMetric, withoutOurs } from './autoscaler-form.ts'
import { autoscalerChangeProblems, autoscalerStatusProblems, newAutoscalerProblems } from './autoscaler-problems.ts'
import { autoscalerTable } from './autoscaler-table.ts'

export const horizontalPodAutoscalerStrategy: KindStrategy<HorizontalPodAutoscaler> = {
  ...resources.horizontalpodautoscalers,
  table: autoscalerTable,
  selectableFields: [],
  subresources: { status: { ...statusSubresource, validateUpdate: (_, now) => autoscalerStatusProblems(now) } },
  withDefaults: withAutoscalerDefaults,
  emptyStatus: { desiredReplicas: 0 },
  prepareForCreate: ({ status: _, ...autoscaler }) => autoscaler,
  validateCreate: newAutoscalerProblems,
  validateUpdate: autoscalerChangeProblems,
}

export const horizontalPodAutoscalerV1Strategy: KindStrategy<HorizontalPodAutoscaler> = {
  ...horizontalPodAutoscalerStrategy,
  ...otherForms.horizontalpodautoscalers,
  form: {
    // Both were read with the schema of their version.
    read: (autoscaler) => autoscalerOfV1(autoscaler as HorizontalPodAutoscalerV1),
    show: (autoscaler) => autoscalerV1Of(autoscaler as HorizontalPodAutoscaler),
    fields: {},
  },
}

/** SetDefaults_HorizontalPodAutoscaler (pkg/apis/autoscaling/v2/defaults.go). */
function withAutoscalerDefaults(autoscaler: HorizontalPodAutoscaler): HorizontalPodAutoscaler {
  const { metadata, spec } = autoscaler
  const { minReplicas = 1, metrics = [], behavior } = spec
  return {
    ...autoscaler,
    metadata: withoutOurs(metadata),
    spec: {
      ...spec,
      minReplicas,
      metrics: metrics.length === 0 ? [defaultMetric] : metrics,
      ...(behavior && { behavior: withRules(behavior) }),
    },
  }
}

const periodSeconds = 15
const scaleUpRules: ScalingRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds },
    { type: 'Percent', value: 100, periodSeconds },
  ],
}
/** The window of scaling down is a setting of the controller. */
const scaleDownRules: ScalingRules = {
  selectPolicy: 'Max',
  policies: [{ type: 'Percent', value: 100, periodSeconds }],
}

function withRules({ scaleUp, scaleDown }: ScalingBehavior): ScalingBehavior {
  return { scaleUp: { ...scaleUpRules, ...scaleUp }, scaleDown: { ...scaleDownRules, ...scaleDown } }
}
