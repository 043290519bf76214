/** The writes of taint eviction: deletions of pods, their status messages and their Events. */
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keyText } from '../../store/informer.ts'
import { podReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredPod } from '../../store/store.ts'
import { removePod } from './pod-removal.ts'
import { disruptedPod, stayingPod } from './taint-eviction.ts'

export type TaintEvictionWriteNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

export interface TaintEvictionWrites {
  /**
   * Events last an hour, so the status message has the reason too. It outlives this process: a controller that starts again
   * records no Event for what it finds explained.
   */
  explainStay(pod: StoredPod, message: string): Promise<void>
  /** Deletes the pod with its grace period, if it `isDue` still when that is written. */
  evict(pod: StoredPod, isDue: () => boolean): Promise<void>
  recordCancelled(pod: StoredPod): Promise<void>
}

/** The names that Kubernetes uses (pkg/controller/tainteviction/taint_eviction.go). */
const component = 'taint-eviction-controller'
const evictionReason = 'TaintManagerEviction'

export function taintEvictionWrites({ store, events, clock, log }: TaintEvictionWriteNeeds): TaintEvictionWrites {
  const record = async (pod: StoredPod, reason: string, message: string) => {
    try {
      await events.record({ object: podReference(pod), type: 'Normal', reason, message, component })
    } catch (error) {
      log.warn('Event not recorded', { reason, pod: keyText(pod.metadata), error })
    }
  }

  const recordCancelled = (pod: StoredPod) =>
    record(pod, evictionReason, `Cancelling deletion of Pod ${keyText(pod.metadata)}`)

  return {
    async explainStay(pod, message) {
      if (pod.status?.message === message) return
      const { name, namespace = '', uid } = pod.metadata
      const change = (fresh: StoredPod) => stayingPod(fresh, message)
      await rewrite({ store, clock }, 'pods', { key: { namespace, name }, uid, part: 'status', change })
      await record(pod, 'EvictionSkipped', message)
    },
    async evict(pod, isDue) {
      const key = keyText(pod.metadata)
      await record(pod, evictionReason, `Marking for deletion Pod ${key}`)
      const change = (fresh: StoredPod) =>
        fresh.metadata.deletionTimestamp === undefined && isDue()
          ? disruptedPod(fresh, rfc3339(clock.wallMs()))
          : undefined
      const isLeaving = await removePod({ store, clock }, pod, { change })
      if (isLeaving) log.info('Pod evicted for a taint', { pod: key, node: pod.spec.nodeName })
      else if (!isDue()) await recordCancelled(pod)
    },
    recordCancelled,
  }
}
