/** The status of a disruption budget: healthy pods, required healthy pods, and allowed disruptions. */
import { isDeepStrictEqual } from 'node:util'
import { podCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '../../../api/pod-disruption-budget.ts'
import { scaledShare } from '../../../api/validation/share-validation.ts'

export type BudgetCount = {
  readonly status: PodDisruptionBudgetStatus
  /** Pods whose eviction was granted so long ago that it is not going to happen. */
  readonly notDeleted: readonly string[]
  /** When the next granted eviction will be that old; wall time. */
  readonly lookAgainMs: number | undefined
}

/** As Kubernetes: a pod whose eviction was granted counts as gone for this long. */
const disruptionLifetimeMs = 120_000

/** Whether the budget is a part of the pods that their controllers want, not a number of pods. */
export function countsByScale({ spec = {} }: PodDisruptionBudget): boolean {
  return spec.maxUnavailable !== undefined || typeof spec.minAvailable === 'string'
}

/** The pods of a budget. */
export type CountedPods = {
  readonly size: number
  /** Those that are ready and not leaving. */
  readonly healthy: number
  get(name: string): Pod | undefined
}

/**
 * `pods`: those that the budget selects. `now`: as objects carry it. `wanted`: the pods that their controllers want, for a budget that
 * counts by their scale; undefined: those that are there.
 */
export function countBudget(
  budget: PodDisruptionBudget,
  pods: CountedPods,
  nowMs: number,
  now: string,
  wanted = pods.size,
): BudgetCount {
  const leaving = Object.entries(budget.status?.disruptedPods ?? {}).flatMap(([name, granted]) => {
    const pod = pods.get(name)
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return []
    return [{ name, granted, pod, untilMs: Date.parse(granted) + disruptionLifetimeMs }]
  })
  const current = leaving.filter(({ untilMs }) => untilMs > nowMs)
  const currentHealthy = pods.healthy - current.filter(({ pod }) => countsAsHealthy(pod)).length
  const expectedPods = countsByScale(budget) ? wanted : plainlyExpected(budget, pods.size)
  const desiredHealthy = desiredOf(budget.spec ?? {}, expectedPods)
  const spare = currentHealthy - desiredHealthy
  const disruptionsAllowed = expectedPods === 0 || spare < 0 ? 0 : spare
  const { generation } = budget.metadata
  const status = {
    ...(generation !== undefined && { observedGeneration: generation }),
    ...(current.length > 0 && {
      disruptedPods: Object.fromEntries(current.map(({ name, granted }) => [name, granted])),
    }),
    disruptionsAllowed,
    currentHealthy,
    desiredHealthy,
    expectedPods,
    conditions: conditionsOf(budget, disruptionsAllowed > 0 ? allowed : notAllowed, now, generation),
  }
  return {
    status,
    notDeleted: leaving.filter(({ untilMs }) => untilMs <= nowMs).map(({ name }) => name),
    lookAgainMs: current.length > 0 ? Math.min(...current.map(({ untilMs }) => untilMs)) : undefined,
  }
}

/** The budget with this status; undefined when it has it already. */
export function withStatus<B extends PodDisruptionBudget>(budget: B, status: PodDisruptionBudgetStatus): B | undefined {
  return isDeepStrictEqual(budget.status, status) ? undefined : { ...budget, status }
}

/** Whether a budget counts this pod differently from that one. */
export function countsDifferently(present: Pod, previous: Pod): boolean {
  return (
    countsAsHealthy(present) !== countsAsHealthy(previous) ||
    present.metadata.deletionTimestamp !== previous.metadata.deletionTimestamp ||
    present.metadata.uid !== previous.metadata.uid
  )
}

export function countsAsHealthy(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp === undefined && podCondition(pod, 'Ready')?.status === 'True'
}

/**
 * A budget that states neither number expects no pods, and so allows no disruption (getExpectedPodCount and
 * updatePdbStatus in pkg/controller/disruption/disruption.go).
 */
function plainlyExpected({ spec }: PodDisruptionBudget, present: number): number {
  return spec?.minAvailable === undefined ? 0 : present
}

function desiredOf(
  { minAvailable, maxUnavailable }: NonNullable<PodDisruptionBudget['spec']>,
  expectedPods: number,
): number {
  if (maxUnavailable !== undefined) return Math.max(0, expectedPods - scaledShare(maxUnavailable, expectedPods, 'up'))
  return minAvailable === undefined ? 0 : scaledShare(minAvailable, expectedPods, 'up')
}

/** For a budget whose pods cannot be counted: none may be evicted (failSafe in pkg/controller/disruption/disruption.go). */
export function failedStatus(budget: PodDisruptionBudget, message: string, now: string): PodDisruptionBudgetStatus {
  const observed = budget.status?.observedGeneration
  const conditions = conditionsOf(budget, { status: 'False', reason: 'SyncFailed', message }, now, observed)
  return { currentHealthy: 0, desiredHealthy: 0, expectedPods: 0, ...budget.status, disruptionsAllowed: 0, conditions }
}

type Allowance = { readonly status: 'True' | 'False'; readonly reason: string; readonly message: string }
const allowed: Allowance = { status: 'True', reason: 'SufficientPods', message: '' }
const notAllowed: Allowance = { status: 'False', reason: 'InsufficientPods', message: '' }

function conditionsOf(
  budget: PodDisruptionBudget,
  allowance: Allowance,
  now: string,
  observedGeneration: number | undefined,
) {
  const type = 'DisruptionAllowed'
  const { status, reason, message } = allowance
  const present = budget.status?.conditions ?? []
  const earlier = present.find((condition) => condition.type === type)
  const since = earlier?.status === status ? earlier.lastTransitionTime : undefined
  const others = present.filter((condition) => condition !== earlier)
  return [
    ...others,
    {
      type,
      status,
      ...(observedGeneration !== undefined && { observedGeneration }),
      lastTransitionTime: since ?? now,
      reason,
      message,
    },
  ] as const
}
