/**
 * From what the metrics ask for to the replicas that are set: stabilization, rates, and the limits of the autoscaler (normalizeDesiredReplicas
 * and normalizeDesiredReplicasWithBehaviors in pkg/controller/podautoscaler/horizontal.go). Times are of the monotonic clock.
 */
import type { ScalingBehavior, ScalingRules } from '../../../api/autoscaling/horizontal-pod-autoscaler.ts'

/** What an autoscaler remembers; it is not kept over a restart of the controller, as in Kubernetes. */
export type ScalingHistory = {
  /** Replicas that the metrics asked for, before any limit. */
  readonly recommendations: readonly { readonly replicas: number; readonly atMs: number }[]
  readonly ups: readonly ScaleChange[]
  readonly downs: readonly ScaleChange[]
}
type ScaleChange = { readonly change: number; readonly atMs: number }

export type LimitInput = {
  readonly current: number
  readonly wanted: number
  readonly minReplicas: number
  readonly maxReplicas: number
  /** With its defaults; undefined: the rules of autoscalers without one. */
  readonly behavior: ScalingBehavior | undefined
  readonly history: ScalingHistory
  /** --horizontal-pod-autoscaler-downscale-stabilization. */
  readonly downscaleStabilizationMs: number
  readonly nowMs: number
}

export type Finding = { readonly status: 'True' | 'False'; readonly reason: string; readonly message: string }

export type Limited = {
  readonly replicas: number
  readonly history: ScalingHistory
  readonly ableToScale: Finding
  readonly scalingLimited: Finding
}

type Choice = { readonly replicas: number; readonly reason: string; readonly message: string }

/** The longest window and the longest period that validation allows. */
const longestWindowMs = 3600_000
const longestPeriodMs = 1800_000

/** Before the first reading of metrics the replicas that are there count as wanted (recordInitialRecommendation). */
export function newScalingHistory(current: number, nowMs: number): ScalingHistory {
  return { recommendations: [{ replicas: current, atMs: nowMs }], ups: [], downs: [] }
}

export function limitScaling(input: LimitInput): Limited {
  const { wanted, history, nowMs, downscaleStabilizationMs } = input
  const stable = input.behavior === undefined ? stableDownscale(input) : stableBehavior(input, input.behavior)
  const allowed = allowedReplicas(input, stable.replicas)
  const keptMs = Math.max(longestWindowMs, downscaleStabilizationMs)
  const recommendations = [
    ...history.recommendations.filter(({ atMs }) => nowMs - atMs <= keptMs),
    { replicas: wanted, atMs: nowMs },
  ]
  return {
    replicas: allowed.replicas,
    history: { ...history, recommendations },
    ableToScale:
      stable.replicas === wanted
        ? { status: 'True', reason: 'ReadyForNewScale', message: 'recommended size matches current size' }
        : { status: 'True', reason: stable.reason, message: stable.message },
    scalingLimited: {
      status: allowed.replicas === stable.replicas ? 'False' : 'True',
      reason: allowed.reason,
      message: allowed.message,
    },
  }
}

/** The history after the target was scaled. Only behaviors read it (storeScaleEvent). */
export function afterScaling(history: ScalingHistory, before: number, after: number, nowMs: number): ScalingHistory {
  const change = Math.abs(after - before)
  const added = (changes: readonly ScaleChange[]) => [
    ...changes.filter(({ atMs }) => nowMs - atMs < longestPeriodMs),
    { change, atMs: nowMs },
  ]
  return after > before ? { ...history, ups: added(history.ups) } : { ...history, downs: added(history.downs) }
}

const stabilizedDown = {
  reason: 'ScaleDownStabilized',
  message: 'recent recommendations were higher than current one, applying the highest recent recommendation',
}
const stabilizedUp = {
  reason: 'ScaleUpStabilized',
  message: 'recent recommendations were lower than current one, applying the lowest recent recommendation',
}

function stableDownscale({ wanted, history, downscaleStabilizationMs, nowMs }: LimitInput): Choice {
  const recent = history.recommendations.filter(({ atMs }) => atMs >= nowMs - downscaleStabilizationMs)
  return { replicas: Math.max(wanted, ...recent.map(({ replicas }) => replicas)), ...stabilizedDown }
}

function stableBehavior(input: LimitInput, { scaleUp, scaleDown }: ScalingBehavior): Choice {
  const { current, wanted, history, downscaleStabilizationMs, nowMs } = input
  const since = (windowMs: number) =>
    history.recommendations.filter(({ atMs }) => atMs > nowMs - windowMs).map(({ replicas }) => replicas)
  const upMs = (scaleUp?.stabilizationWindowSeconds ?? 0) * 1000
  const downSeconds = scaleDown?.stabilizationWindowSeconds
  const downMs = downSeconds === undefined ? downscaleStabilizationMs : downSeconds * 1000
  const lowest = Math.min(wanted, ...since(upMs))
  const highest = Math.max(wanted, ...since(downMs))
  const replicas = Math.min(Math.max(current, lowest), highest)
  return { replicas, ...(wanted >= current ? stabilizedUp : stabilizedDown) }
}

const withinRange = {
  reason: 'DesiredWithinRange',
  message: 'the desired count is within the acceptable range',
}
const tooMany = {
  reason: 'TooManyReplicas',
  message: 'the desired replica count is more than the maximum replica count',
}
const tooFew = { reason: 'TooFewReplicas', message: 'the desired replica count is less than the minimum replica count' }
const tooFastUp = {
  reason: 'ScaleUpLimit',
  message: 'the desired replica count is increasing faster than the maximum scale rate',
}
const tooFastDown = {
  reason: 'ScaleDownLimit',
  message: 'the desired replica count is decreasing faster than the maximum scale rate',
}

/** convertDesiredReplicasWithRules and convertDesiredReplicasWithBehaviorRate: within the limits, and no faster than is allowed. */
function allowedReplicas(input: LimitInput, wanted: number): Choice {
  const { minReplicas, maxReplicas } = input
  const { least, most } = reachable(input)
  if (wanted > Math.min(most, maxReplicas)) {
    return most < maxReplicas ? { replicas: most, ...tooFastUp } : { replicas: maxReplicas, ...tooMany }
  }
  if (wanted < Math.max(least, minReplicas)) {
    return least > minReplicas ? { replicas: least, ...tooFastDown } : { replicas: minReplicas, ...tooFew }
  }
  return { replicas: wanted, ...withinRange }
}

/** What may be scaled to now. Without a behavior replicas are doubled at most, and four are always allowed (calculateScaleUpLimit). */
function reachable(input: LimitInput): { readonly least: number; readonly most: number } {
  const { current, behavior } = input
  if (behavior === undefined) return { least: 0, most: Math.max(2 * current, 4) }
  return {
    least: Math.min(rateLimit(input, behavior.scaleDown ?? {}, 'down'), current),
    most: Math.max(rateLimit(input, behavior.scaleUp ?? {}, 'up'), current),
  }
}

/** To how many replicas the rules let it scale now (calculateScaleUpLimitWithScalingRules, calculateScaleDownLimitWithBehaviors). */
function rateLimit(input: LimitInput, rules: ScalingRules, direction: 'up' | 'down'): number {
  const { current, history, nowMs } = input
  if (rules.selectPolicy === 'Disabled') return current
  const changedIn = (periodSeconds: number, changes: readonly ScaleChange[]) =>
    changes.filter(({ atMs }) => atMs > nowMs - periodSeconds * 1000).reduce((sum, { change }) => sum + change, 0)
  const limits = (rules.policies ?? []).map(({ type, value = 0, periodSeconds = 0 }) => {
    const atStart = current - changedIn(periodSeconds, history.ups) + changedIn(periodSeconds, history.downs)
    if (type === 'Pods') return direction === 'up' ? atStart + value : atStart - value
    // Rounded up, or a small count would never grow.
    return direction === 'up' ? Math.ceil(atStart * (1 + value / 100)) : Math.trunc(atStart * (1 - value / 100))
  })
  const isLeastChange = rules.selectPolicy === 'Min'
  return (direction === 'up') === isLeastChange ? Math.min(...limits) : Math.max(...limits)
}
