/** The status of a Deployment and its conditions (pkg/controller/deployment/progress.go, sync.go). Pure. */
import type { Deployment, DeploymentCondition, DeploymentStatus } from '../../../../api/workloads/deployment.ts'
import type { ReplicaSet } from '../../../../api/workloads/replica-set.ts'
import { rollingLimits, sizeOf, sumOf, sumOfSizes } from './deployment-sizes.ts'

const largestInt32 = 2 ** 31 - 1

export type Conditions = readonly DeploymentCondition[]
export type DeploymentStatusFacts = {
  readonly deployment: Deployment
  /** All of them. */
  readonly sets: readonly ReplicaSet[]
  readonly newSet: ReplicaSet | undefined
  /** As they are before the counts are looked at. */
  readonly conditions: Conditions
  readonly nowMs: number
  /** The same, RFC 3339. */
  readonly now: string
}

type Reason = Pick<DeploymentCondition, 'type' | 'status'> & { readonly reason: string; readonly message: string }

export function conditionOf(conditions: Conditions, type: string): DeploymentCondition | undefined {
  return conditions.find((condition) => condition.type === type)
}

/** A condition of the same status and reason stays as it is; one of the same status keeps its transition time. */
export function withDeploymentCondition(conditions: Conditions, condition: Reason, now: string): Conditions {
  const before = conditionOf(conditions, condition.type)
  if (before?.status === condition.status && before.reason === condition.reason) return conditions
  const lastTransitionTime = before?.status === condition.status ? (before.lastTransitionTime ?? now) : now
  const set = { ...condition, lastUpdateTime: now, lastTransitionTime }
  return [...without(conditions, condition.type), set]
}

function without(conditions: Conditions, type: string): Conditions {
  return conditions.filter((condition) => condition.type !== type)
}

export function hasProgressDeadline({ spec }: Deployment): boolean {
  return spec.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds !== largestInt32
}

/** Pausing and resuming stop the clock of the progress deadline. */
export function pausedConditions(deployment: Deployment, conditions: Conditions, now: string): Conditions {
  const progress = conditionOf(conditions, 'Progressing')
  if (!hasProgressDeadline(deployment) || progress?.reason === 'ProgressDeadlineExceeded') return conditions
  const wasPaused = progress?.reason === 'DeploymentPaused'
  const isPaused = deployment.spec.paused === true
  if (isPaused === wasPaused) return conditions
  return isPaused
    ? withDeploymentCondition(conditions, progressing('Unknown', 'DeploymentPaused', 'Deployment is paused'), now)
    : withDeploymentCondition(conditions, progressing('Unknown', 'DeploymentResumed', 'Deployment is resumed'), now)
}

export function progressing(status: 'True' | 'False' | 'Unknown', reason: string, message: string): Reason {
  return { type: 'Progressing', status, reason, message }
}

/** Counts, and whether enough replicas are available. */
export function countedStatus({ deployment, sets, newSet, conditions, now }: DeploymentStatusFacts): DeploymentStatus {
  const available = sumOf('availableReplicas', sets)
  const { collisionCount } = deployment.status ?? {}
  const counts = {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: sumOf('replicas', sets),
    updatedReplicas: newSet?.status?.replicas ?? 0,
    readyReplicas: sumOf('readyReplicas', sets),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, sumOfSizes(sets) - available),
  }
  const isEnough = available >= sizeOf(deployment) - rollingLimits(deployment).maxUnavailable
  const availability: Reason = isEnough
    ? {
        type: 'Available',
        status: 'True',
        reason: 'MinimumReplicasAvailable',
        message: 'Deployment has minimum availability.',
      }
    : {
        type: 'Available',
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      }
  return {
    ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    conditions: withDeploymentCondition(conditions, availability, now),
    ...(collisionCount !== undefined && { collisionCount }),
  }
}

/** Status during a rollout: with its progress, or the failures of its ReplicaSets. */
export function rolloutStatus(facts: DeploymentStatusFacts): DeploymentStatus {
  const counted = countedStatus(facts)
  const progress = progressConditions(facts, counted)
  const conditions = failureConditions(facts, progress)
  return { ...counted, conditions }
}

function progressConditions(
  { deployment, newSet, conditions, nowMs, now }: DeploymentStatusFacts,
  counted: DeploymentStatus,
) {
  const present = counted.conditions ?? []
  if (!hasProgressDeadline(deployment)) return without(present, 'Progressing')
  const current = conditionOf(conditions, 'Progressing')
  const wasComplete =
    (counted.replicas ?? 0) === (counted.updatedReplicas ?? 0) && current?.reason === 'NewReplicaSetAvailable'
  if (wasComplete) return present
  const subject =
    newSet === undefined ? `Deployment "${deployment.metadata.name}"` : `ReplicaSet "${newSet.metadata.name}"`
  if (isComplete(deployment, counted)) {
    const message = `${subject} has successfully progressed.`
    return withDeploymentCondition(present, progressing('True', 'NewReplicaSetAvailable', message), now)
  }
  if (hasProgressed(deployment, counted)) {
    const message = `${subject} is progressing.`
    const condition = progressing('True', 'ReplicaSetUpdated', message)
    const lastTransitionTime = current?.status === 'True' ? (current.lastTransitionTime ?? now) : now
    const set = { ...condition, lastUpdateTime: now, lastTransitionTime }
    return [...without(present, 'Progressing'), set]
  }
  if (!hasTimedOut(deployment, current, nowMs)) return present
  const message = `${subject} has timed out progressing.`
  return withDeploymentCondition(present, progressing('False', 'ProgressDeadlineExceeded', message), now)
}

/** DeploymentComplete. */
export function isComplete(deployment: Deployment, status: DeploymentStatus): boolean {
  const wanted = sizeOf(deployment)
  const { updatedReplicas = 0, replicas = 0, availableReplicas = 0, observedGeneration = 0 } = status
  const isWhole = updatedReplicas === wanted && replicas === wanted && availableReplicas === wanted
  return isWhole && observedGeneration >= (deployment.metadata.generation ?? 0)
}

function hasProgressed({ status: before = {} }: Deployment, status: DeploymentStatus): boolean {
  const oldReplicas = ({ replicas = 0, updatedReplicas = 0 }: DeploymentStatus) => replicas - updatedReplicas
  const isMore = (count: 'updatedReplicas' | 'readyReplicas' | 'availableReplicas') =>
    (status[count] ?? 0) > (before[count] ?? 0)
  return (
    isMore('updatedReplicas') ||
    oldReplicas(status) < oldReplicas(before) ||
    isMore('readyReplicas') ||
    isMore('availableReplicas')
  )
}

function hasTimedOut(deployment: Deployment, progress: DeploymentCondition | undefined, nowMs: number): boolean {
  if (progress === undefined || progress.reason === 'NewReplicaSetAvailable') return false
  return deadlineMs(deployment, progress) < nowMs
}

function deadlineMs({ spec }: Deployment, { lastUpdateTime = '' }: DeploymentCondition): number {
  return (Date.parse(lastUpdateTime) || 0) + (spec.progressDeadlineSeconds ?? 0) * 1000
}

/**
 * When to look whether a rollout has made progress; in ms from now; undefined: it need not. One that was complete before cannot time
 * out, whatever its pods do later: only a change makes a difference (DeploymentTimedOut).
 */
export function progressCheckMs(deployment: Deployment, status: DeploymentStatus, nowMs: number): number | undefined {
  const progress = conditionOf(status.conditions ?? [], 'Progressing')
  if (!hasProgressDeadline(deployment) || progress === undefined) return undefined
  if (isComplete(deployment, status)) return undefined
  if (progress.reason === 'ProgressDeadlineExceeded' || progress.reason === 'NewReplicaSetAvailable') return undefined
  return Math.max(0, deadlineMs(deployment, progress) - nowMs) + 1000
}

/** The failure of the new ReplicaSet, or else of the first that has one. */
function failureConditions({ sets, newSet, now }: DeploymentStatusFacts, present: Conditions): Conditions {
  const type = 'ReplicaFailure'
  const failures = [...(newSet === undefined ? [] : [newSet]), ...sets].flatMap(({ status }) =>
    (status?.conditions ?? []).filter((condition) => condition.type === type),
  )
  const [failure] = failures
  if (failure === undefined) return without(present, type)
  const before = conditionOf(present, type)
  if (before?.status === failure.status && before.reason === failure.reason) return present
  const { status, reason = '', message = '', lastTransitionTime = now } = failure
  const since = before?.status === status ? (before.lastTransitionTime ?? lastTransitionTime) : lastTransitionTime
  const set = { type, status, reason, message, lastUpdateTime: lastTransitionTime, lastTransitionTime: since }
  return [...without(present, type), set]
}
