/** What a Job reads of its pods (pkg/controller/job/indexed_job_utils.go, tracking_utils.go and backoff_utils.go). */

import { isIndexedJob, type Job, jobNames } from '../../../../api/batch/job.ts'
import { hasEndedForGood } from '../../../../api/node/node-shutdown.ts'
import { podCondition } from '../../../../api/pod/pod-conditions.ts'
import { isFinished } from '../../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../../api/pod.ts'

type Annotated = { readonly metadata: Pick<Pod['metadata'], 'annotations'> }

/** undefined: the pod has none, or one that is not an index. */
export function completionIndexOf({ metadata }: Annotated): number | undefined {
  const text = metadata.annotations?.[jobNames.completionIndex] ?? ''
  return /^\+?\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** The same, only where the Job has such an index. */
export function validIndexOf(pod: Annotated, { spec }: Pick<Job, 'spec'>): number | undefined {
  const index = completionIndexOf(pod)
  return index !== undefined && index < (spec.completions ?? 0) ? index : undefined
}

export function isTracked({ metadata }: Pod): boolean {
  return metadata.finalizers?.includes(jobNames.trackingFinalizer) === true
}

/** Neither the phase nor a deletion has ended it, but it is being deleted. */
export function isTerminatingPod(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined && !isFinished(pod)
}

/** Pods are replaced when they have ended, not already when they are being deleted. */
export function replacesFailedOnly({ spec }: Pick<Job, 'spec'>): boolean {
  return spec.podReplacementPolicy === 'Failed' || spec.podFailurePolicy !== undefined
}

/**
 * A pod that is being deleted has failed, too: its node may never report that it ended. A pod that waits for its machine to boot has not,
 * unless it is deleted.
 */
export function isFailedPod(pod: Pod, job: Pick<Job, 'spec'>): boolean {
  const isDeleted = pod.metadata.deletionTimestamp !== undefined
  if (pod.status?.phase === 'Failed') return isDeleted || hasEndedForGood(pod)
  return !replacesFailedOnly(job) && isDeleted && pod.status?.phase !== 'Succeeded'
}

export function hasLimitPerIndex({ spec }: Pick<Job, 'spec'>): boolean {
  return isIndexedJob(spec) && spec.backoffLimitPerIndex !== undefined
}

/** How often its index had failed before this pod, without those failures that a policy ignored. */
export function indexFailuresOf(pod: Annotated): number {
  return countIn(pod, jobNames.indexFailureCount)
}

export function ignoredIndexFailuresOf(pod: Annotated): number {
  return countIn(pod, jobNames.indexIgnoredFailureCount)
}

function countIn({ metadata }: Annotated, annotation: string): number {
  const text = metadata.annotations?.[annotation] ?? ''
  const count = /^\+?\d{1,15}$/.test(text) ? Number(text) : 0
  return count < 2 ** 31 ? count : 0
}

/**
 * When the pod ended, in ms: the end of its last container, else when it was no longer ready, else when its deletion was asked
 * for, else when it was created.
 */
export function finishedAtMs(pod: Pod): number {
  const ready = podCondition(pod, 'Ready')
  const unreadyMs = ready?.status === 'False' ? instant(ready.lastTransitionTime) : undefined
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, creationTimestamp } = pod.metadata
  const deletedMs = instant(deletionTimestamp)
  const askedMs = deletedMs === undefined ? undefined : deletedMs - deletionGracePeriodSeconds * 1000
  return containersEndMs(pod) ?? unreadyMs ?? askedMs ?? instant(creationTimestamp) ?? 0
}

/** undefined when a container has not ended, or none is known. Sidecars end last. */
function containersEndMs({ spec, status }: Pod): number | undefined {
  const isSidecar = ({ name }: { readonly name: string }) =>
    spec.initContainers?.some((one) => one.name === name && one.restartPolicy === 'Always') === true
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? []).filter(isSidecar)]
  const ends = statuses.map(({ state }) => instant(state?.terminated?.finishedAt))
  if (ends.length === 0) return undefined
  return ends.reduce((a, b) => (a === undefined || b === undefined ? undefined : Math.max(a, b)))
}

function instant(time: string | undefined): number | undefined {
  const ms = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(ms) ? undefined : ms
}
