/** Readiness and availability of pods, and which of them count as replicas (pkg/api/v1/pod/util.go, pkg/controller/controller_utils.go). */
import { hasEndedForGood } from '../../../api/node/node-shutdown.ts'
import { podCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'

/** Neither ended nor being deleted. A pod waits for its machine that announced its return, and is not replaced. */
export function isActivePod(pod: Pod): boolean {
  return !hasEndedForGood(pod) && pod.metadata.deletionTimestamp === undefined
}

export function isReadyPod(pod: Pod): boolean {
  return podCondition(pod, 'Ready')?.status === 'True'
}

/** Until when the pod is, or was, not ready for `minReadySeconds`; in ms of wall time. undefined: it is not ready. */
export function availableAtMs(pod: Pod, minReadySeconds: number): number | undefined {
  const ready = podCondition(pod, 'Ready')
  if (ready?.status !== 'True') return undefined
  if (minReadySeconds === 0) return Number.NEGATIVE_INFINITY
  const sinceMs = Date.parse(ready.lastTransitionTime ?? '')
  return Number.isNaN(sinceMs) ? undefined : sinceMs + minReadySeconds * 1000
}

export function isAvailablePod(pod: Pod, minReadySeconds: number, nowMs: number): boolean {
  const atMs = availableAtMs(pod, minReadySeconds)
  return atMs !== undefined && atMs < nowMs
}

/**
 * Until when the next of the pods that are ready is not available; undefined: all of those are, or none is ready. In steps: there may be
 * very many.
 */
export function* nextAvailableMs(
  pods: Iterable<Pod>,
  minReadySeconds: number,
  nowMs: number,
): Steps<number | undefined> {
  let next: number | undefined
  if (minReadySeconds === 0) return next
  for (const pod of pods) {
    yield
    const atMs = availableAtMs(pod, minReadySeconds)
    if (atMs !== undefined && atMs >= nowMs && (next === undefined || atMs < next)) next = atMs
  }
  return next
}
