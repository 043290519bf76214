/** Who of the wanted pods may run here: lets in, refuses, ends by decision, and takes back what a shutdown decided. */
import type { PressureType } from '../../../api/node.ts'
import { comesBack } from '../../../api/node-shutdown.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Ending } from '../../eviction/evictable-pods.ts'
import { appArmorRefusal } from '../options/kernel-limits.ts'
import type { PodNews } from '../record/pod-events.ts'
import { isLeaving, isOver, onAdmitted, onEnded, onResumed } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import type { KernelLimits } from '../runtime/runtime.ts'
import { refusedStatus, withDisruption } from '../status/pod-endings.ts'
import type { PodStatusManager } from '../status/pod-status-manager.ts'
import type { WantedPods } from '../wanted/pod-config.ts'
import { type Allocatable, admit } from './admit.ts'

/** What the verdicts ask of the machine, as it is now. */
export type Host = {
  allocatable(): Allocatable
  /** What it is short of. */
  pressures(): readonly PressureType[]
  /** It takes no new pods. */
  isShuttingDown(): boolean
  /** What its kernel can hold containers to; undefined until the engine said so. */
  kernelLimits(): KernelLimits | undefined
}

export type VerdictNeeds = {
  readonly wanted: Pick<WantedPods, 'all' | 'oldestFirst'>
  readonly records: PodRecords
  readonly statuses: PodStatusManager
  readonly node: Host
  readonly event: (pod: Pod, news: PodNews) => void
  /** A pod is over: worth remembering. */
  readonly ended: () => void
  readonly visit: (uid: string) => void
  readonly clock: Clock
}

export interface PodVerdicts {
  /** Who comes new is let in, or refused: over before it began. */
  admitNew(): void
  /** Stops the pod for good. Nothing happens when it is over, or not wanted. */
  endPod(uid: string, ending: Ending): void
  /** The shutdown is called off: what it ended, or refused, is to run again. */
  goOn(): void
}

/** As the kubelet makes room for a pod the machine needs. */
const preempted: Ending = {
  reason: 'Preempting',
  message: 'Preempted in order to admit critical pod',
  event: 'Warning',
  disruption: 'Pod was preempted by Kubelet to accommodate a critical pod.',
}

export function podVerdicts(needs: VerdictNeeds): PodVerdicts {
  const { wanted, records, node, event, ended, visit, clock } = needs
  const admitNew = () => {
    for (const uid of wanted.oldestFirst(wanted.all.keys())) {
      const pod = wanted.all.get(uid)
      const known = records.of(uid)
      if (pod === undefined || known.admitted || isLeaving(pod) || isOver(pod, known)) continue
      const unguarded = appArmorRefusal(pod, node.kernelLimits())
      if (unguarded !== undefined) {
        refuse(uid, pod, unguarded)
        continue
      }
      const answer = admit(pod, running(), node.allocatable(), node.pressures(), node.isShuttingDown())
      if (!answer.admit) {
        refuse(uid, pod, answer)
        continue
      }
      records.update(uid, onAdmitted)
      for (const other of answer.preempt ?? []) endPod(other.metadata.uid ?? '', preempted)
    }
  }

  /** Whatever takes room here: what nobody wants any more does until it is gone. */
  const running = () =>
    [...records.entries]
      .filter(([, { admitted, ended }]) => admitted && ended === undefined)
      .flatMap(([uid, { pod: last }]) => wanted.all.get(uid) ?? last ?? [])

  const refuse = (uid: string, pod: Pod, why: { readonly reason: string; readonly message: string }) => {
    const { reason, message } = why
    event(pod, { type: 'Warning', reason, message })
    const status = refusedStatus(pod, { reason, message }, clock.wallMs())
    needs.statuses.report(uid, pod, status)
    records.update(uid, (record) => onEnded(record, status))
    ended()
  }

  const endPod: PodVerdicts['endPod'] = (uid, ending) => {
    const pod = wanted.all.get(uid)
    if (pod === undefined) return
    const known = records.of(uid)
    if (isOver(pod, known)) return
    const { reason, message, gracePeriodSeconds, event: type } = ending
    if (type !== undefined) event(pod, { type, reason, message })
    const conditions = withDisruption(known.status?.conditions ?? [], ending.disruption, clock.wallMs())
    const status = { ...known.status, phase: 'Failed', reason, message, conditions } as const
    records.update(uid, (record) => onEnded(record, status, gracePeriodSeconds))
    ended()
    visit(uid)
  }

  return {
    admitNew,
    endPod,
    goOn() {
      for (const [uid, { ended: verdict, pod: last }] of records.entries) {
        const pod = wanted.all.get(uid) ?? last
        if (pod === undefined || verdict === undefined || !comesBack(pod, verdict)) continue
        records.update(uid, (record) => onResumed(record, verdict))
      }
    },
  }
}
