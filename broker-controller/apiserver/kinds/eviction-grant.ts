/** Decides whether the disruption budgets allow the eviction of a pod, as Kubernetes' eviction subresource does. */
import { ApiError } from '../../../api/api-error.ts'
import { podCondition, withPodCondition } from '../../../api/pod/pod-conditions.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '../../../api/pod-disruption-budget.ts'
import { matchesLabels, requirementsOf } from '../../../api/selectors.ts'

export type EvictionGrant<B extends PodDisruptionBudget = PodDisruptionBudget> =
  /** No budget applies to it. */
  | { readonly grant: 'free' }
  /** It is not ready, so it costs no budget: granted for this version of the pod only. `budget`: whose it is. */
  | { readonly grant: 'unready'; readonly budget: B }
  /** To be written first, on the version it was read: the budget with one disruption less. */
  | { readonly grant: 'budget'; readonly budget: B }
  | { readonly grant: 'refused'; readonly error: ApiError }

/** `budgets`: those of the pod's namespace. */
export function evictionGrant<B extends PodDisruptionBudget>(
  pod: Pod,
  budgets: readonly B[],
  now: string,
): EvictionGrant<B> {
  if (isFreeToEvict(pod)) return { grant: 'free' }
  const [budget, ...more] = budgets.filter((candidate) => selects(candidate, pod))
  if (budget === undefined) return { grant: 'free' }
  if (more.length > 0) {
    const message = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.'
    return { grant: 'refused', error: new ApiError('InternalError', message) }
  }
  if (podCondition(pod, 'Ready')?.status !== 'True' && mayGoUnready(budget)) return { grant: 'unready', budget }
  const error = refusal(budget)
  return error === undefined
    ? { grant: 'budget', budget: decremented(budget, pod.metadata.name ?? '', now) }
    : { grant: 'refused', error }
}

/** The pod with the condition that states why it ends. One that has ended already is not disrupted. */
export function evictedPod<P extends Pod>(pod: P, now: string): P {
  if (isFinished(pod)) return pod
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  } as const
  return withPodCondition(pod, condition, now) ?? pod
}

/** 429 to be repeated soon: the status of the budget is older than its specification. */
export function notYetKnown(budgetName: string): ApiError {
  return tooMany(`The disruption budget ${budgetName} is still being processed by the server.`, 10)
}

function selects({ spec }: PodDisruptionBudget, { metadata }: Pod): boolean {
  const requirements = requirementsOf(spec?.selector)
  return requirements?.ok === true && matchesLabels(requirements.value, metadata.labels)
}

function isFreeToEvict(pod: Pod): boolean {
  const isPending = (pod.status?.phase ?? 'Pending') === 'Pending'
  return isPending || isFinished(pod) || pod.metadata.deletionTimestamp !== undefined
}

function mayGoUnready({ spec, status }: PodDisruptionBudget): boolean {
  if (spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {}
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy
}

/** So many evictions unconfirmed by the budget's controller mean that it does not keep up. */
const mostDisruptedPods = 2000

const nothingKnown: PodDisruptionBudgetStatus = {
  disruptionsAllowed: 0,
  currentHealthy: 0,
  desiredHealthy: 0,
  expectedPods: 0,
}

function refusal({ metadata, status = nothingKnown }: PodDisruptionBudget): ApiError | undefined {
  const { name = '', generation = 0 } = metadata
  const { observedGeneration = 0, disruptionsAllowed, disruptedPods = {}, desiredHealthy, currentHealthy } = status
  if (observedGeneration < generation) return notYetKnown(name)
  if (disruptionsAllowed < 0) return forbidden(name, 'pdb disruptions allowed is negative')
  if (Object.keys(disruptedPods).length > mostDisruptedPods) {
    return forbidden(name, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller')
  }
  if (disruptionsAllowed > 0) return undefined
  return tooMany(
    `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
  )
}

function decremented<B extends PodDisruptionBudget>(budget: B, podName: string, now: string): B {
  const { status = nothingKnown } = budget
  const disruptionsAllowed = status.disruptionsAllowed - 1
  const disruptedPods = { ...status.disruptedPods, [podName]: now }
  return { ...budget, status: { ...status, disruptionsAllowed, disruptedPods } }
}

function tooMany(cause: string, retryAfterSeconds?: number): ApiError {
  return new ApiError('TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
    causes: [{ reason: 'DisruptionBudget', message: cause }],
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
}

function forbidden(name: string, because: string): ApiError {
  const kind = 'poddisruptionbudget'
  return new ApiError('Forbidden', `${kind}.policy "${name}" is forbidden: ${because}`, { name, group: 'policy', kind })
}
