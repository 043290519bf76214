/** What eviction needs of the pod manager. */
import type { Pod } from '../../api/pod.ts'

/** As the kubelet, for a hard threshold and for an exceeded limit (eviction_manager.go, immediateEvictionGracePeriodSeconds). */
export const immediatelySeconds = 1

/** A decision that a pod is over: an eviction, a shutdown. */
export type Ending = {
  readonly reason: string
  readonly message: string
  /** In place of the pod's own. */
  readonly gracePeriodSeconds?: number
  /** Type of an Event of the pod; undefined: no Event. */
  readonly event?: 'Normal' | 'Warning'
  /** Not by its own doing: the message of its condition DisruptionTarget. */
  readonly disruption?: string
}

export interface EvictablePods {
  /** Those that are not over: they run, or are to run. */
  active(): readonly Pod[]
  /** Resolves when no container of the pod runs and its volumes are removed, or when `signal` aborts. */
  stopped(uid: string, signal: AbortSignal): Promise<void>
  /** Stops the pod for good: Failed, with this reason. Nothing happens when it is over, or not here. */
  endPod(uid: string, ending: Ending): void
}
