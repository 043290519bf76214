/** Events of containers that wait: one for each new reason, until a step was executed for the container. */
import type { Pod } from '../../../api/pod.ts'
import type { PodPlan } from '../plan/pod-steps.ts'
import { containersOf } from '../record/pod-containers.ts'
import { eventsOfWaiting, type PodEvent } from '../record/pod-events.ts'

export type WaitingEvents = {
  readonly events: readonly PodEvent[]
  /** By container name: the reason that was recorded last. */
  readonly recorded: ReadonlyMap<string, string>
}

/** The events to record now, given what was recorded before. */
export function waitingEvents(pod: Pod, { waiting }: PodPlan, before: ReadonlyMap<string, string>): WaitingEvents {
  const recorded = new Map(before)
  const events = containersOf(pod).flatMap(({ name, image = '' }) => {
    const wait = waiting.get(name)
    if (wait === undefined || wait.reason === before.get(name)) return []
    const found = eventsOfWaiting(pod, name, image, wait)
    // A reason without an event is passed through: the reason after it may be the one recorded before.
    if (found.length > 0) recorded.set(name, wait.reason)
    return found
  })
  return { events, recorded }
}
