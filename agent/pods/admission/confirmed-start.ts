/**
 * Holds pods of StatefulSets after a start of the agent: the checkpoint may be older than their release. An operator who declared this machine
 * out of service, or deleted the pod by force, has let another machine run a pod of that name.
 */
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { StartDelay, StartGate } from './start-gate.ts'

/** A machine that boots has its network within this time. Without a controller its pods start all the same. */
export const confirmationMs = 30_000
const againMs = 1_000

/** The wait of a pod that has no container running; undefined: it may start. `sinceStartMs`: since the agent started. */
export function confirmationDelay(pod: Pod, sinceStartMs: number): StartDelay | undefined {
  const isSingle = pod.metadata.ownerReferences?.some(({ controller, kind }) => controller && kind === 'StatefulSet')
  const leftMs = confirmationMs - sinceStartMs
  if (!isSingle || leftMs <= 0) return undefined
  const message = `The agent has started, and waits up to ${confirmationMs / 1000} s for the controller to confirm that this pod of a StatefulSet is still wanted here`
  return { reason: 'WaitingForController', message, againInMs: Math.min(againMs, leftMs), isNew: false }
}

export interface ConfirmedStart extends StartGate {
  /** The controller has sent the desired pods: none is held any more. */
  confirm(): void
}

/** `next` decides about pods that are not held. */
export function confirmedStart(next: StartGate, clock: Pick<Clock, 'monotonicMs'>): ConfirmedStart {
  const startedMs = clock.monotonicMs()
  let isConfirmed = false
  return {
    hold(pod) {
      const delay = isConfirmed ? undefined : confirmationDelay(pod, clock.monotonicMs() - startedMs)
      return delay ?? next.hold(pod)
    },
    starting: next.starting,
    wanted: next.wanted,
    confirm() {
      isConfirmed = true
    },
  }
}
