/** The phase of a pod, and the init containers that it still waits for. */
import type { ContainerState, ContainerStatus, Pod, PodPhase } from '../../../api/pod.ts'
import { isSidecar } from './pod-containers.ts'
import { restartPolicyOf } from './restarts.ts'

/** Succeeded and Failed are final. */
export function isFinal(phase: PodPhase | undefined): phase is 'Succeeded' | 'Failed' {
  return phase === 'Succeeded' || phase === 'Failed'
}

/** Section by section as getPhase (pkg/kubelet/kubelet_pods.go). */
export function phaseOf(
  pod: Pod,
  statuses: readonly ContainerStatus[],
  initStatuses: readonly ContainerStatus[],
): PodPhase {
  const policy = restartPolicyOf(pod.spec.restartPolicy)
  const plain = plainInits(pod, initStatuses).map(endOf)
  if (policy === 'Never' && plain.some((end) => end !== undefined && end.exitCode !== 0)) return 'Failed'
  if (plain.some((end) => end === undefined) || !isInitialized(pod, statuses, initStatuses)) return 'Pending'
  const running = statuses.filter(({ state }) => state?.running !== undefined).length
  const neverRan = ({ state, lastState }: ContainerStatus) =>
    state?.running === undefined && state?.terminated === undefined && lastState?.terminated === undefined
  if (statuses.some(neverRan)) return 'Pending'
  if (running > 0) return 'Running'
  if (policy === 'Always') return 'Running'
  const ended = statuses.map(endOf)
  if (ended.every((end) => end?.exitCode === 0)) return 'Succeeded'
  return policy === 'Never' ? 'Failed' : 'Running'
}

function endOf({ state, lastState }: ContainerStatus): ContainerState['terminated'] {
  return state?.running === undefined ? (state?.terminated ?? lastState?.terminated) : undefined
}

/** The init containers are done: a regular container was started. */
export function isInitialized(
  pod: Pod,
  statuses: readonly ContainerStatus[],
  initStatuses: readonly ContainerStatus[],
): boolean {
  const begun = ({ state }: ContainerStatus) => state?.running !== undefined || state?.terminated !== undefined
  return statuses.some(begun) || incomplete(pod, initStatuses).length === 0
}

/** Names of the init containers that have not completed. */
export function incomplete(pod: Pod, initStatuses: readonly ContainerStatus[]): readonly string[] {
  const plain = plainInits(pod, initStatuses)
  return initStatuses
    .filter((status) => (plain.includes(status) ? !status.ready : status.started !== true))
    .map(({ name }) => name)
}

/** Init containers that are not sidecars. */
export function plainInits({ spec }: Pod, statuses: readonly ContainerStatus[]): readonly ContainerStatus[] {
  return statuses.filter((_, index) => {
    const container = spec.initContainers?.[index]
    return container !== undefined && !isSidecar(container)
  })
}
