/** Ends pods by a decision (eviction, preemption, shutdown), and waits until they have stopped. */
import { comesBack } from '../../../api/node/node-shutdown.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { EvictablePods } from '../../eviction/evictable-pods.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { isOver, onEnded, onResumed } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import { withDisruption } from '../status/pod-endings.ts'
import type { WantedPods } from '../wanted/pod-config.ts'

export type PodTerminationNeeds = {
  readonly wanted: Pick<WantedPods, 'all'>
  readonly records: PodRecords
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  /** The checkpoint's content changed. */
  readonly save: () => void
  readonly sync: (uid: string) => void
  readonly clock: Clock
}

export interface PodTermination extends EvictablePods {
  /** Containers of the pod may run, or its volumes may exist. */
  holds(uid: string): boolean
  /** The shutdown is cancelled: the pods that it ended or rejected run again. */
  resume(): void
}

export function podTermination(needs: PodTerminationNeeds): PodTermination {
  const { wanted, records, clock } = needs
  return {
    active: () =>
      [...wanted.all].flatMap(([uid, pod]) => {
        const record = records.get(uid)
        return record?.admitted && !isOver(pod, record) ? [pod] : []
      }),
    holds(uid) {
      const record = records.get(uid)
      return record !== undefined && !record.cleared
    },
    stopped: (uid, signal) => records.until(uid, (record) => record === undefined || record.cleared === true, signal),
    endPod(uid, ending) {
      const pod = wanted.all.get(uid)
      if (pod === undefined || isOver(pod, records.of(uid))) return
      const { reason, message, gracePeriodSeconds, event: type, disruption } = ending
      if (type !== undefined) needs.recordEvent(pod, { type, reason, message })
      const { status: last } = records.of(uid)
      const conditions = withDisruption(last?.conditions ?? [], disruption, clock.wallMs())
      const status = { ...last, phase: 'Failed', reason, message, conditions } as const
      records.update(uid, (record) => onEnded(record, status, gracePeriodSeconds))
      needs.save()
      needs.sync(uid)
    },
    resume() {
      for (const [uid, { ended, pod: last }] of records.entries) {
        const pod = wanted.all.get(uid) ?? last
        if (pod === undefined || ended === undefined || !comesBack(pod, ended)) continue
        records.update(uid, (record) => onResumed(record, ended))
      }
    },
  }
}
