/** Decides whether the deletion of a pod removes the object now, or marks it so that its node ends the pod first. */
import type { Pod } from '../pod.ts'

export type PodDeletion<P extends Pod = Pod> =
  | { readonly remove: true }
  /** `pod` is the very same object when nothing needs writing: it is being deleted already, and not for longer. */
  | { readonly remove: false; readonly pod: P }

export type PodDeletionRequest = {
  /** What the caller asked for; undefined: the pod's own. */
  readonly gracePeriodSeconds?: number | undefined
  readonly nowMs: number
}

/**
 * As Kubernetes' API: a pod that no node runs goes at once, so does one whose grace is 0, unless finalizers hold it. A
 * pod that is being deleted keeps its grace; a later request can only shorten it.
 */
export function planPodDeletion<P extends Pod>(
  pod: P,
  { gracePeriodSeconds, nowMs }: PodDeletionRequest,
): PodDeletion<P> {
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata
  if (deletionTimestamp === undefined) {
    const seconds = graceOf(pod, gracePeriodSeconds)
    return seconds === 0 ? removed(pod, nowMs) : marked(pod, nowMs + seconds * 1000, seconds)
  }
  if (deletionGracePeriodSeconds === undefined) return removed(pod, nowMs)
  if (gracePeriodSeconds === undefined) return { remove: false, pod }
  const seconds = graceOf(pod, gracePeriodSeconds)
  if (seconds === 0) return removed(pod, nowMs)
  if (seconds >= deletionGracePeriodSeconds) return { remove: false, pod }
  const askedMs = Date.parse(deletionTimestamp) - Math.min(deletionGracePeriodSeconds, longestGrace) * 1000
  return marked(pod, askedMs + seconds * 1000, seconds)
}

/** Whether its phase is final. A pod that its machine ended to shut down may run again: see `hasEndedForGood`. */
export function isFinished(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
}

function graceOf(pod: Pod, asked: number | undefined): number {
  if (isUnscheduled(pod) || isFinished(pod)) return 0
  return Math.min(asked === undefined ? graceSecondsOf(pod) : secondsOf(asked), longestGrace)
}

/** The time that the containers of a pod are given to end, unless a deletion asks for another one. */
export function graceSecondsOf({ spec }: Pick<Pod, 'spec'>): number {
  return secondsOf(spec.terminationGracePeriodSeconds ?? 30)
}

/** A negative value is 1 (staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go, BeforeDelete). */
function secondsOf(seconds: number): number {
  return seconds < 0 ? 1 : seconds
}

/** In seconds, 300 years: a grace may have as many as a number holds, and the end of it must be a date. */
const longestGrace = 10_000_000_000

function isUnscheduled(pod: Pod): boolean {
  return (pod.spec.nodeName ?? '') === ''
}

/** Finalizers hold the object, not the containers: its grace is 0 all the same. */
function removed<P extends Pod>(pod: P, nowMs: number): PodDeletion<P> {
  if ((pod.metadata.finalizers ?? []).length === 0) return { remove: true }
  if (pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionGracePeriodSeconds === 0) {
    return { remove: false, pod }
  }
  return marked(pod, nowMs, 0)
}

function marked<P extends Pod>(pod: P, untilMs: number, seconds: number): PodDeletion<P> {
  const deletionTimestamp = `${new Date(untilMs).toISOString().slice(0, 19)}Z`
  const metadata = { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: seconds }
  return { remove: false, pod: { ...pod, metadata } }
}
