/**
 * Containers that ended because all of their pod ended. An engine that is stopped or upgraded without live-restore stops the sandbox and
 * the containers of each pod. A program that exits with code 0 on the signal has not completed its work: if it counted as completed, a
 * container with OnFailure or Never, such as that of a Job, would never run again.
 */
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { ContainerEnds } from './container-ends.ts'
import { containersOf, restartPolicyFor } from './pod-containers.ts'
import { shouldRestart } from './restarts.ts'

/** The code of a program that SIGTERM has ended. */
const terminatedCode = 143
/** The engine signals all containers at the same moment: a container may end this long before its sandbox. */
const togetherMs = 10_000

const failure = {
  exitCode: terminatedCode,
  error:
    "The container exited with code 0 when the pod's sandbox ended, as both do when the container engine is stopped. It has not completed",
}

/**
 * Ids of the containers that would count as completed although they exited when their sandbox ended, or after it. Those in `ends` ended
 * while the sandbox ran. No list shows the end of a container without that of its sandbox if the engine caused both: an
 * engine that stops refuses connections before it stops containers (moby's cmd/dockerd/daemon.go, start), and each call has its own.
 */
export function endedWithSandbox(
  pod: Pod,
  ends: ContainerEnds,
  listed: readonly RuntimeContainer[],
): readonly string[] {
  const names = new Set(
    containersOf(pod).flatMap((one) => (shouldRestart(restartPolicyFor(pod, one), 0) ? [] : [one.name])),
  )
  const sandboxEndMs = new Map(
    listed.flatMap(({ id, identity, state, finishedAt }) =>
      identity.kind === 'sandbox' && state === 'exited' ? [[id, Date.parse(finishedAt ?? '')] as const] : [],
    ),
  )
  return listed.flatMap(({ id, identity, sandboxID = '', state, exitCode, finishedAt }) => {
    const completed = state === 'exited' && exitCode === 0 && names.has(identity.containerName)
    if (!completed || ends.get(identity.containerName)?.id === id) return []
    const beforeMs = (sandboxEndMs.get(sandboxID) ?? Number.NaN) - Date.parse(finishedAt ?? '')
    return beforeMs <= togetherMs ? [id] : []
  })
}

/** The containers as listed. Those with these ids have failed, as with SIGTERM. */
export function withFailed(listed: readonly RuntimeContainer[], ids: ReadonlySet<string>): readonly RuntimeContainer[] {
  return ids.size === 0 ? listed : listed.map((one) => (ids.has(one.id) ? { ...one, ...failure } : one))
}
