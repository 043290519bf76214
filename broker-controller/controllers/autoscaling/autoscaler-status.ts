/** The conditions and counts of an autoscaler (setCondition and setStatus in pkg/controller/podautoscaler/horizontal.go). */
import type {
  AutoscalerCondition,
  AutoscalerStatus,
  MetricStatus,
} from '../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import type { Finding } from './scaling-limits.ts'

export type ConditionType = 'AbleToScale' | 'ScalingActive' | 'ScalingLimited'

/** `now`: RFC 3339. */
export function withAutoscalerCondition(
  status: AutoscalerStatus,
  type: ConditionType,
  { status: value, reason, message }: Finding,
  now: string,
): AutoscalerStatus {
  const conditions = status.conditions ?? []
  const before = conditions.find((condition) => condition.type === type)
  const lastTransitionTime = before?.status === value ? before.lastTransitionTime : now
  const wanted: AutoscalerCondition = {
    type,
    status: value,
    ...(lastTransitionTime !== undefined && { lastTransitionTime }),
    reason,
    message,
  }
  return {
    ...status,
    conditions:
      before === undefined ? [...conditions, wanted] : conditions.map((one) => (one === before ? wanted : one)),
  }
}

export type AutoscalerCounts = {
  readonly currentReplicas: number
  readonly desiredReplicas: number
  readonly currentMetrics: readonly MetricStatus[]
  /** RFC 3339; undefined: it was not scaled now. */
  readonly scaledAt?: string | undefined
}

/** What is zero or empty is left out where Kubernetes leaves it out. */
export function withAutoscalerCounts(status: AutoscalerStatus, counts: AutoscalerCounts): AutoscalerStatus {
  const { currentReplicas, desiredReplicas, currentMetrics, scaledAt } = counts
  const lastScaleTime = scaledAt ?? status.lastScaleTime
  return {
    ...(lastScaleTime !== undefined && { lastScaleTime }),
    ...(currentReplicas !== 0 && { currentReplicas }),
    desiredReplicas,
    ...(currentMetrics.length > 0 && { currentMetrics }),
    ...(status.conditions && { conditions: status.conditions }),
  }
}
