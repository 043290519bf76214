/**
 * Pods that were to be deleted and were not (syncStalePodDisruption in pkg/controller/disruption/disruption.go): the
 * condition that their disruption left must not explain a later failure.
 */
import { podCondition, withPodCondition } from '../../../api/pod/pod-conditions.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { keyFrom, keyText } from '../../store/informer.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { ObjectKey, Store, StoredPod } from '../../store/store.ts'

const disruptionTarget = 'DisruptionTarget'
/** stalePodDisruptionTimeout. */
const staleMs = 120_000

/** Until the condition is withdrawn, at least 0; undefined: the pod has none, is leaving, or has ended. */
export function staleDisruptionLeftMs(pod: Pod, nowMs: number): number | undefined {
  const condition = podCondition(pod, disruptionTarget)
  if (pod.metadata.deletionTimestamp !== undefined || isFinished(pod) || condition?.status !== 'True') return undefined
  // The kubelet ends these pods itself.
  if (condition.reason === 'TerminationByKubelet') return undefined
  const sinceMs = Date.parse(condition.lastTransitionTime ?? '')
  return Number.isNaN(sinceMs) ? 0 : Math.max(0, sinceMs + staleMs - nowMs)
}

export interface StaleDisruptions {
  /** A pod that is new or was changed. */
  observe(pod: StoredPod): void
  run(signal: AbortSignal): Promise<void>
}

export type StaleDisruptionNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/** `podOf`: the pod as it is known now. */
export function staleDisruptions(
  { store, clock, log }: StaleDisruptionNeeds,
  podOf: (key: ObjectKey) => StoredPod | undefined,
): StaleDisruptions {
  const queue = workQueue(clock)
  const reconcile = async (key: string) => {
    const pod = podOf(keyFrom(key))
    const leftMs = pod && staleDisruptionLeftMs(pod, clock.wallMs())
    if (pod === undefined || leftMs === undefined) return undefined
    if (leftMs > 0) return { requeueAfterMs: leftMs }
    const { uid } = pod.metadata
    const change = (fresh: StoredPod) => {
      const nowMs = clock.wallMs()
      if (staleDisruptionLeftMs(fresh, nowMs) !== 0) return undefined
      return withPodCondition(fresh, { type: disruptionTarget, status: 'False' }, rfc3339(nowMs))
    }
    await rewrite({ store, clock }, 'pods', { key: keyFrom(key), uid, part: 'status', change })
    return undefined
  }
  return {
    observe(pod) {
      const leftMs = staleDisruptionLeftMs(pod, clock.wallMs())
      if (leftMs !== undefined) queue.addAfter(keyText(pod.metadata), leftMs)
    },
    run: (signal) => runController({ name: 'stale-disruption', reconcile }, queue, log, signal),
  }
}
