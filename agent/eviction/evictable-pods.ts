/** The pod manager's interface for evictions. */
import type { Pod } from '../../api/pod.ts'

/** Grace period for a hard threshold and for an exceeded limit (eviction_manager.go, immediateEvictionGracePeriodSeconds). */
export const immediatelySeconds = 1

/** A decision to end a pod: an eviction or a shutdown. */
export type Ending = {
  readonly reason: string
  readonly message: string
  /** Overrides the grace period of the pod. */
  readonly gracePeriodSeconds?: number
  /** Type of the pod's Event; undefined: no Event. */
  readonly event?: 'Normal' | 'Warning'
  /** The message of the condition DisruptionTarget; undefined when the pod itself is the cause. */
  readonly disruption?: string
}

export interface EvictablePods {
  /** Pods that have not ended: they run, or are to run. */
  active(): readonly Pod[]
  /** Resolves when no container of the pod runs and its volumes are removed, or when `signal` aborts. */
  stopped(uid: string, signal: AbortSignal): Promise<void>
  /**
   * Terminates the pod: its phase becomes Failed, with this reason. Does nothing if the pod has ended or is not on this node.
   */
  endPod(uid: string, ending: Ending): void
}
