/** What the sync of a pod reports: its status, and Events of why containers wait. */
import { isDeepStrictEqual } from 'node:util'
import { comesBack } from '../../../api/node/node-shutdown.ts'
import type { Pod, PodStatus } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { PodPlan } from '../plan/pod-steps.ts'
import { endMessages, withEnds } from '../record/container-ends.ts'
import { isFinal } from '../record/pod-phase.ts'
import { isLeaving, isOver, onEnded, onEndsObserved, onWaitingRecorded, vitalsOf } from '../record/pod-record.ts'
import { endedStatus, terminatedStatus } from '../status/pod-endings.ts'
import { podStatus } from '../status/pod-status.ts'
import { waitingEvents } from '../status/waiting-events.ts'
import type { SyncPodNeeds } from './sync-needs.ts'

export function recordWaiting(uid: string, pod: Pod, plan: PodPlan, { records, recordEvent }: SyncPodNeeds): void {
  const { events, recorded } = waitingEvents(pod, plan, records.of(uid).waitingRecorded)
  if (events.length === 0) return
  records.update(uid, (record) => onWaitingRecorded(record, recorded))
  for (const one of events) recordEvent(pod, one)
}

export function reportStatus(
  uid: string,
  pod: Pod,
  containers: readonly RuntimeContainer[],
  { waiting }: PodPlan,
  needs: SyncPodNeeds,
): void {
  const { records, statuses, sources, hostIP, otherHostIP, clock, date } = needs
  const known = records.of(uid)
  const over = isOver(pod, known)
  if (over && containers.length === 0) {
    // Without containers the decision's status is final. A status that the control plane has set is not reported back.
    if (known.ended !== undefined) statuses.report(uid, pod, finalStatus(pod, known.ended))
    return
  }
  const last = known.ended ?? known.status ?? (over ? pod.status : undefined)
  const found = podStatus(pod, {
    containers: withEnds(pod, known.ends, containers),
    waiting,
    vitals: vitalsOf(known),
    messages: new Map([...endMessages(known.ends), ...known.terminationMessages]),
    last,
    hostIP: hostIP(),
    otherHostIP: otherHostIP?.(),
    isOffNetwork: sources().isOffNetwork,
    nowWallMs: date.nowMs() ?? clock.wallMs(),
  })
  const shown = shownStatus(pod, found, { over, last })
  statuses.report(uid, pod, shown)
  // An end is recorded at once: what still runs beside the completed containers is stopped.
  const status = over ? shown : found
  if (isFinal(status.phase)) recordEnd(uid, status, needs)
  else if (!over && !isLeaving(pod)) recordEnds(uid, pod, containers, needs)
}

type Ending = { readonly over: boolean; readonly last: PodStatus | undefined }

/** `last`: of a pod that is over, the status of its end. */
function shownStatus(pod: Pod, found: PodStatus, { over, last }: Ending): PodStatus {
  if (!over && !isFinal(found.phase)) return found
  return finalStatus(pod, endedStatus(found, over ? (last ?? {}) : found))
}

/** A pod that runs again after a shutdown keeps what is known of its containers. */
function finalStatus(pod: Pod, status: PodStatus): PodStatus {
  return isFinal(status.phase) && !comesBack(pod, status) ? terminatedStatus(pod, status) : status
}

function recordEnd(uid: string, ended: PodStatus, { records, updates }: SyncPodNeeds): void {
  if (isDeepStrictEqual(ended, records.of(uid).ended)) return
  records.update(uid, (record) => onEnded(record, ended))
  updates.podEnded()
}

function recordEnds(
  uid: string,
  pod: Pod,
  containers: readonly RuntimeContainer[],
  { records, save }: SyncPodNeeds,
): void {
  const { ends } = records.of(uid)
  if (records.update(uid, (record) => onEndsObserved(record, pod, containers))?.ends !== ends) save()
}
