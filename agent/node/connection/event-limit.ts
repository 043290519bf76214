/** How many Events the agent publishes: each is a message over a slow link. */
import { type Event, eventsOfObject } from '../../../api/event.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { expiringMap } from '../../../daemon/limits/expiring-map.ts'
import { tokenBuckets } from '../../../daemon/limits/token-bucket.ts'

/** Objects, and Events that were not published: more than the pods of a node with a crash each. */
const mostRemembered = 512
/** How long an Event that was not published is counted: as long as Events are kept, without other settings. */
const countedMs = 60 * 60_000

/**
 * Returns the function that gives the Event to publish, with how often it happened since it was published last; undefined: not now.
 * It is the limit of the kubelet, and the only one of its objects: the controller combines similar Events, and limits each node as a whole.
 */
export function eventLimit(clock: Pick<Clock, 'monotonicMs'>): (event: Event) => Event | undefined {
  const limit = tokenBuckets(eventsOfObject, clock, mostRemembered)
  const unpublished = expiringMap<number>(clock, countedMs, mostRemembered)
  return (event) => {
    const { kind, namespace, name, uid, fieldPath } = event.involvedObject
    const object = [kind, namespace, name, uid, event.type]
    const key = JSON.stringify([...object, fieldPath, event.reason, event.message])
    const count = (unpublished.get(key) ?? 0) + 1
    if (limit.take(JSON.stringify(object)) > 0) {
      unpublished.set(key, count)
      return undefined
    }
    unpublished.delete(key)
    return { ...event, count }
  }
}
