/** The status of a pod after the report of its node. */
import { comesBack, withoutShutdown } from '../../../api/node/node-shutdown.ts'
import { isFinished, type PodDeletion, planPodDeletion } from '../../../api/pod/pod-deletion.ts'
import type { Pod, PodCondition, PodStatus } from '../../../api/pod.ts'
import type { PodMessage } from '../../../api/topics.ts'

/** `because` is a reason of the metric `bramble_inbox_dropped_total`. */
export type PodReport =
  | { readonly isAccepted: true; readonly status: PodStatus }
  | { readonly isAccepted: false; readonly because: 'NoSuchPod' | 'AnotherPod' | 'AnotherNode' }

/** The pod's status after a report, which is accepted only from the node that the pod is bound to. */
export function podStatusAfter(node: string, uid: string, message: PodMessage, pod: Pod | undefined): PodReport {
  if (pod === undefined) return { isAccepted: false, because: 'NoSuchPod' }
  if (message.uid !== uid || pod.metadata.uid !== uid) return { isAccepted: false, because: 'AnotherPod' }
  if (pod.spec.nodeName !== node) return { isAccepted: false, because: 'AnotherNode' }
  const isBack = comesBack(pod) && !comesBack(pod, message.status)
  const before = isBack && pod.status !== undefined ? withoutShutdown(pod.status) : (pod.status ?? {})
  const { conditions: reported = [], ...report } = message.status
  const conditions = reported
    .filter(({ type }) => nodesPodConditions.has(type) || sharedPodConditions.has(type))
    .map((condition) => scheduledSince(condition, before))
  const types = new Set(conditions.map(({ type }) => type))
  const others = (before.conditions ?? []).filter(({ type }) => !types.has(type) && !nodesPodConditions.has(type))
  return {
    isAccepted: true,
    status: {
      ...(before.qosClass !== undefined && { qosClass: before.qosClass }),
      ...report,
      // It does not change across reports (updateStatusInternal in pkg/kubelet/status/status_manager.go).
      ...(before.startTime !== undefined && { startTime: before.startTime }),
      ...endedAs(pod, report.phase),
      conditions: [...others, ...conditions],
    },
  }
}

/** Only the node writes these conditions (PodConditionByKubelet, pkg/kubelet/types/pod_status.go). */
const nodesPodConditions: ReadonlySet<string> = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodResizePending',
  'PodResizeInProgress',
])
/** Both the node and the control plane write these (PodConditionSharedByKubelet); one that the node leaves out stays. */
const sharedPodConditions: ReadonlySet<string> = new Set(['PodScheduled', 'DisruptionTarget'])

/** The node reports its own start of the pod, not when it was bound: the scheduler's time stays (updateLastTransitionTime). */
function scheduledSince(condition: PodCondition, before: PodStatus): PodCondition {
  const known = before.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition.type !== 'PodScheduled' || condition.status !== known?.status) return condition
  return known.lastTransitionTime === undefined
    ? condition
    : { ...condition, lastTransitionTime: known.lastTransitionTime }
}

/** A finished pod stays finished, whatever its node reports. Exception: a pod that its node restarts after a shutdown. */
function endedAs(pod: Pod, reported: PodStatus['phase']): Pick<PodStatus, 'phase' | 'reason' | 'message'> {
  if (!isFinished(pod) || comesBack(pod) || pod.status === undefined || reported === pod.status.phase) return {}
  const { phase, reason, message } = pod.status
  return { phase, ...(reason !== undefined && { reason }), ...(message !== undefined && { message }) }
}

/**
 * A pod that its node has removed. One that is being deleted is removed from the store now, or when its finalizers are gone.
 * undefined: it is not being deleted.
 */
export function removedPod<P extends Pod>(pod: P, nowMs: number): PodDeletion<P> | undefined {
  if (pod.metadata.deletionTimestamp === undefined) return undefined
  return planPodDeletion(pod, { gracePeriodSeconds: 0, nowMs })
}
