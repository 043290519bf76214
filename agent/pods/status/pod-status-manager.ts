/**
 * Reports the status of pods to the control plane, each only when it changed (pkg/kubelet/status/status_manager.go).
 */
import type { Pod, PodStatus } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ControlPlane } from '../../node/connection/control-plane.ts'
import { onReported } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import { podPath } from '../wanted/desired-pods.ts'

export interface PodStatusManager {
  /** Reports the status unless it was reported already. */
  report(uid: string, pod: Pod, status: PodStatus): void
  /**
   * All containers and volumes of the pod are removed: drops its record. While the pod is `desired`, reports this once until
   * `resendGone`.
   */
  reportGone(uid: string, desired: boolean): void
  /** The control plane still desires these pods (default: all): their next `reportGone` is sent again. */
  resendGone(uids?: readonly string[]): void
}

export type PodStatusManagerNeeds = {
  readonly records: PodRecords
  readonly controlPlane: Pick<ControlPlane, 'reportPod' | 'reportPodGone'>
  /** A pod runs, this long after its first report. */
  readonly started?: (seconds: number) => void
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Log
}

export function podStatusManager(needs: PodStatusManagerNeeds): PodStatusManager {
  const { records, controlPlane, started, clock, log } = needs
  /** By UID, of pods that were first reported as Pending and still are: when that was. */
  const pendingSinceMs = new Map<string, number>()
  const countStart = (uid: string, phase: PodStatus['phase'], isFirst: boolean) => {
    if (phase === 'Pending') {
      if (isFirst) pendingSinceMs.set(uid, clock.monotonicMs())
      return
    }
    const sinceMs = pendingSinceMs.get(uid)
    pendingSinceMs.delete(uid)
    if (sinceMs !== undefined && phase === 'Running') started?.((clock.monotonicMs() - sinceMs) / 1000)
  }
  /** UIDs without a record. */
  const goneReported = new Set<string>()

  return {
    report(uid, pod, status) {
      const { name = '', namespace = 'default', resourceVersion = '' } = pod.metadata
      const message = { namespace, name, uid, observedResourceVersion: resourceVersion, status }
      const text = JSON.stringify(message)
      const before = records.of(uid)
      if (before.reported === text) return
      const { phase, reason } = status
      if (before.status?.phase !== phase)
        log.info('Pod changed', { pod: podPath(pod), phase, ...(reason ? { reason } : {}) })
      countStart(uid, phase, before.status === undefined)
      records.update(uid, (record) => onReported(record, status, text))
      controlPlane.reportPod(message)
    },
    reportGone(uid, desired) {
      const { observed = '', reported, pod } = records.get(uid) ?? {}
      const existed = reported !== undefined || observed !== ''
      records.delete(uid)
      pendingSinceMs.delete(uid)
      if (!existed && (!desired || goneReported.has(uid))) return
      if (desired) goneReported.add(uid)
      controlPlane.reportPodGone(uid)
      if (existed && pod !== undefined) log.info('Pod gone', { pod: podPath(pod) })
    },
    resendGone(uids) {
      if (uids === undefined) goneReported.clear()
      else for (const uid of uids) goneReported.delete(uid)
    },
  }
}
