/** Admits new pods on this node or rejects them (canAdmitPod and rejectPod in pkg/kubelet/kubelet.go). */
import type { PressureType } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Ending } from '../../eviction/evictable-pods.ts'
import type { KernelLimits } from '../../runtime/runtime.ts'
import { appArmorRefusal } from '../options/kernel-limits.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { isLeaving, isOver, onAdmitted, onEnded } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import { refusedStatus } from '../status/pod-endings.ts'
import type { PodStatusManager } from '../status/pod-status-manager.ts'
import type { WantedPods } from '../wanted/pod-config.ts'
import { type Allocatable, admit } from './admit.ts'
import type { PodTermination } from './pod-termination.ts'

/** The node as it is now. */
export type Host = {
  allocatable(): Allocatable
  pressures(): readonly PressureType[]
  /** It takes no new pods. */
  isShuttingDown(): boolean
  /** Limits that the kernel can enforce; undefined until the engine has reported them. */
  kernelLimits(): KernelLimits | undefined
}

export type PodAdmissionNeeds = {
  readonly wanted: Pick<WantedPods, 'all' | 'oldestFirst'>
  readonly records: PodRecords
  readonly statuses: Pick<PodStatusManager, 'report'>
  readonly termination: Pick<PodTermination, 'endPod'>
  readonly node: Host
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  /** The checkpoint's content changed. */
  readonly save: () => void
  readonly clock: Clock
}

export interface PodAdmission {
  /** Admits or rejects each desired pod that was not admitted yet, oldest first. A rejected pod has ended. */
  admitNew(): void
}

/** As pkg/kubelet/preemption/preemption.go. */
const preempted: Ending = {
  reason: 'Preempting',
  message: 'Preempted in order to admit critical pod',
  event: 'Warning',
  disruption: 'Pod was preempted by Kubelet to accommodate a critical pod.',
}

export function podAdmission(needs: PodAdmissionNeeds): PodAdmission {
  const { wanted, records, node, clock } = needs

  /** Pods that use resources of this node, also those no longer desired until they are gone. */
  const running = () =>
    [...records.entries]
      .filter(([, { admitted, ended }]) => admitted && ended === undefined)
      .flatMap(([uid, { pod: last }]) => wanted.all.get(uid) ?? last ?? [])

  const reject = (
    uid: string,
    pod: Pod,
    { reason, message }: { readonly reason: string; readonly message: string },
  ) => {
    needs.recordEvent(pod, { type: 'Warning', reason, message })
    const status = refusedStatus(pod, { reason, message }, clock.wallMs())
    needs.statuses.report(uid, pod, status)
    records.update(uid, (record) => onEnded(record, status))
    needs.save()
  }

  const admitOrReject = (uid: string, pod: Pod) => {
    const refusal = appArmorRefusal(pod, node.kernelLimits())
    if (refusal !== undefined) return reject(uid, pod, refusal)
    const answer = admit(pod, running(), node.allocatable(), node.pressures(), node.isShuttingDown())
    if (!answer.admit) return reject(uid, pod, answer)
    records.update(uid, onAdmitted)
    for (const other of answer.preempt ?? []) needs.termination.endPod(other.metadata.uid ?? '', preempted)
  }

  return {
    admitNew() {
      for (const uid of wanted.oldestFirst(wanted.all.keys())) {
        const pod = wanted.all.get(uid)
        const record = records.of(uid)
        if (pod === undefined || record.admitted || isLeaving(pod) || isOver(pod, record)) continue
        admitOrReject(uid, pod)
      }
    },
  }
}
