/** The status of a pod that was rejected, ended by a decision, or starts again. */

import { qosClassOf } from '../../../api/pod/qos-class.ts'
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../../api/pod.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { isSidecar } from '../record/pod-containers.ts'

/** The pod was rejected: a status without containers (rejectPod in pkg/kubelet/kubelet.go). */
export function refusedStatus(
  pod: Pod,
  { reason, message }: { readonly reason: string; readonly message: string },
  nowWallMs: number,
): PodStatus {
  return {
    phase: 'Failed',
    reason,
    message: `Pod was rejected: ${message}`,
    startTime: rfc3339(nowWallMs),
    qosClass: qosClassOf(pod.spec),
  }
}

/**
 * The pod has ended, by a decision or by itself. Phase, reason, message and DisruptionTarget are those of its end only once
 * all its containers have stopped, as what they hold is not free before (mergePodStatus in
 * pkg/kubelet/status/status_manager.go).
 */
export function endedStatus(found: PodStatus, ending: PodStatus): PodStatus {
  const { phase = 'Failed', reason, message } = ending
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = found
  const runs = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses].some(isRunning)
  if (runs) return { ...found, phase: containerStatuses.some(hasRun) ? 'Running' : 'Pending' }
  const disruption = ending.conditions?.filter(({ type }) => type === 'DisruptionTarget') ?? []
  return {
    ...found,
    phase,
    conditions: [...(found.conditions ?? []), ...disruption],
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  }
}

function isRunning({ state }: ContainerStatus): boolean {
  return state?.running !== undefined
}

function hasRun({ state, lastState }: ContainerStatus): boolean {
  return (state?.running ?? state?.terminated ?? lastState?.terminated) !== undefined
}

/**
 * The final status of a pod: containers that never ran have failed as well, once the pod was initialized (TerminatePod,
 * hasPodInitialized and initializedContainers in pkg/kubelet/status/status_manager.go).
 */
export function terminatedStatus({ spec }: Pick<Pod, 'spec'>, status: PodStatus): PodStatus {
  const { containerStatuses, initContainerStatuses } = status
  const begun = initContainerStatuses?.findLastIndex(hasBegun) ?? -1
  return {
    ...status,
    ...(containerStatuses && isInitialized(spec, status) && { containerStatuses: containerStatuses.map(terminated) }),
    ...(initContainerStatuses && {
      initContainerStatuses: initContainerStatuses.map((one, i) => (i <= Math.max(0, begun) ? terminated(one) : one)),
    }),
  }
}

function isInitialized({ initContainers = [] }: Pod['spec'], status: PodStatus): boolean {
  const last = initContainers.at(-1)
  if (last === undefined || status.containerStatuses?.some(hasBegun)) return true
  const found = status.initContainerStatuses?.find(({ name }) => name === last.name)
  if (isSidecar(last)) return found?.state?.running !== undefined && found.started === true
  return [found?.state, found?.lastState].some((state) => state?.terminated?.exitCode === 0)
}

function hasBegun({ state, lastState }: ContainerStatus): boolean {
  return lastState?.terminated !== undefined || state?.waiting === undefined
}

function terminated(status: ContainerStatus): ContainerStatus {
  if (status.state?.terminated !== undefined) return status
  const message = 'The container could not be located when the pod was terminated'
  return { ...status, state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown', message } } }
}

/** The cause of the end is not the pod itself: its owner may replace it. */
export function withDisruption(
  conditions: readonly PodCondition[],
  message: string | undefined,
  nowWallMs: number,
): readonly PodCondition[] {
  if (message === undefined) return conditions
  const others = conditions.filter(({ type }) => type !== 'DisruptionTarget')
  const lastTransitionTime = rfc3339(nowWallMs)
  return [
    ...others,
    { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message, lastTransitionTime },
  ]
}

/** The status without the results of these containers. */
export function begunAgain(status: PodStatus, names: readonly string[]): PodStatus {
  const others = (of: readonly ContainerStatus[] = []) => of.filter(({ name }) => !names.includes(name))
  return {
    ...status,
    containerStatuses: others(status.containerStatuses),
    initContainerStatuses: others(status.initContainerStatuses),
  }
}
