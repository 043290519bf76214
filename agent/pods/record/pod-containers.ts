/** The containers of one pod in the engine, grouped: its sandbox, and the instances of each container. */

import { graceSecondsOf } from '../../../api/pod/pod-deletion.ts'
import type { Container, Pod } from '../../../api/pod.ts'
import { compareInstants } from '../../../daemon/clock.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { type RestartPolicy, restartPolicyOf } from './restarts.ts'

export type PodContainers = {
  /** The newest sandbox. */
  readonly sandbox: RuntimeContainer | undefined
  readonly olderSandboxes: readonly RuntimeContainer[]
  /** By container name, newest first. Never empty. */
  readonly histories: ReadonlyMap<string, readonly RuntimeContainer[]>
}

/** All containers of the pod in the order of their start; ephemeral containers last. */
export function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
}

/** A sidecar: an init container that keeps running and ends after all regular containers (KEP-753). */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === 'Always'
}

/** The restart policy of an init container is OnFailure, unless the pod's is Never. */
export function restartPolicyFor({ spec }: Pod, container: Container): RestartPolicy {
  if (isSidecar(container)) return 'Always'
  const policy = restartPolicyOf(spec.restartPolicy)
  if (spec.ephemeralContainers?.some(({ name }) => name === container.name)) return 'Never'
  const isInit = spec.initContainers?.some(({ name }) => name === container.name) ?? false
  return isInit && policy === 'Always' ? 'OnFailure' : policy
}

export function sortContainers(containers: readonly RuntimeContainer[]): PodContainers {
  const newestFirst = [...containers].sort(
    (a, b) => b.identity.attempt - a.identity.attempt || compareInstants(b.createdAt, a.createdAt),
  )
  const [sandbox, ...olderSandboxes] = newestFirst.filter(({ identity }) => identity.kind === 'sandbox')
  const histories = new Map<string, RuntimeContainer[]>()
  for (const container of newestFirst) {
    if (container.identity.kind === 'sandbox') continue
    const { containerName } = container.identity
    histories.set(containerName, [...(histories.get(containerName) ?? []), container])
  }
  return { sandbox, olderSandboxes, histories }
}

/** The container holds processes. A created one was never started: its agent was interrupted. */
export function isRunning({ state }: RuntimeContainer): boolean {
  return state === 'running' || state === 'paused' || state === 'restarting'
}

/** The container ran to its end, or the engine could not start it. */
export function hasEnded({ state, error }: RuntimeContainer): boolean {
  return state === 'exited' || state === 'dead' || (state === 'created' && error !== '')
}

/** Created, and not started because the agent was interrupted. */
export function isHalfMade({ state, error }: RuntimeContainer): boolean {
  return state === 'created' && error === ''
}

/** 128 if it could not be started, whatever code the engine has for that. */
export function exitCodeOf({ state, exitCode }: RuntimeContainer): number {
  return state === 'created' ? 128 : exitCode
}

/**
 * Seconds from the signal to the end, at least two so that a program can handle it (minimumGracePeriodInSeconds in
 * pkg/kubelet/kuberuntime/kuberuntime_manager.go).
 */
export function stopGraceSeconds(pod: Pod): number {
  const { deletionGracePeriodSeconds } = pod.metadata
  return Math.max(leastGraceSeconds, deletionGracePeriodSeconds ?? graceSecondsOf(pod))
}

export const leastGraceSeconds = 2
