/** The report of a node's pods at shutdown, and the rule by which both sides recognise those that run again after the boot. */
import { isFinished } from '../pod/pod-deletion.ts'
import type { Pod, PodStatus } from '../pod.ts'

/** As the kubelet writes them. */
export const shutdownEnding = {
  reason: 'Terminated',
  message: 'Pod was terminated in response to imminent node shutdown.',
} as const
export const shutdownRefusal = {
  reason: 'NodeShutdown',
  message: 'Pod was rejected as the node is shutting down.',
} as const
/** Why a node that shuts down is not Ready. */
export const shutdownProblem = 'node is shutting down'

/**
 * Whether the pod was ended only while the machine is down. A pod that may not be tried twice (restartPolicy Never) stays as it is,
 * unless it had not begun.
 */
export function comesBack(
  { spec, status: own }: Pick<Pod, 'spec' | 'status'>,
  status: PodStatus | undefined = own,
): boolean {
  if (status?.phase !== 'Failed') return false
  if (status.reason === shutdownRefusal.reason) return true
  const isStopped = status.reason === shutdownEnding.reason && status.message === shutdownEnding.message
  return isStopped && spec.restartPolicy !== 'Never'
}

/** Whether the pod has ended and will not run again, also not when its machine is back. */
export function hasEndedForGood(pod: Pod): boolean {
  return isFinished(pod) && !comesBack(pod)
}

/** The status without the shutdown in it. */
export function withoutShutdown({ phase: _, reason: __, message: ___, ...status }: PodStatus): PodStatus {
  const conditions = status.conditions?.filter(({ type }) => type !== 'DisruptionTarget')
  return conditions === undefined ? status : { ...status, conditions }
}
