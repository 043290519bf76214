/** core/v1 Event: something happened to an object; `kubectl describe` prints it. */
import { ObjectMetaSchema, ObjectReferenceSchema } from './meta.ts'
import { type Described, field, integer, microTime, object, oneOf, optional, text, time } from './schema.ts'

export const EventSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Event'),
  metadata: field(1, ObjectMetaSchema),
  involvedObject: field(2, ObjectReferenceSchema),
  reason: field(3, optional(text)),
  message: field(4, optional(text)),
  source: field(
    5,
    optional(object('core.v1.EventSource', { component: field(1, optional(text)), host: field(2, optional(text)) })),
  ),
  firstTimestamp: field(6, optional(time)),
  lastTimestamp: field(7, optional(time)),
  count: field(8, optional(integer)),
  type: field(9, optional(text)),
  eventTime: field(10, optional(microTime)),
  series: field(
    11,
    optional(
      object('core.v1.EventSeries', {
        count: field(1, optional(integer)),
        lastObservedTime: field(2, optional(microTime)),
      }),
    ),
  ),
  action: field(12, optional(text)),
  related: field(13, optional(ObjectReferenceSchema)),
  reportingComponent: field(14, optional(text)),
  reportingInstance: field(15, optional(text)),
})
export type Event = Described<typeof EventSchema>

/** As events.k8s.io/v1 validates them: noteLengthLimit and reasonLengthLimit. */
const longest = { message: 1024, reason: 128 } as const

/** Kubernetes' limit for the message of an event, and its scheduler's way to keep it (truncateMessage). */
export function eventMessage(text: string): string {
  const ending = ' ...'
  return text.length <= longest.message ? text : text.slice(0, longest.message - ending.length) + ending
}

export function eventReason(text: string): string {
  return text.slice(0, longest.reason)
}

/**
 * How many Events one source records about one object, of each type: a burst, then one in five minutes
 * (EventSourceObjectSpamFilter, client-go tools/record/events_cache.go).
 */
export const eventsOfObject = { burst: 25, perSecond: 1 / 300 } as const

export type EventOfAgent = Pick<Event, 'metadata' | 'involvedObject'> & {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

/** One that happened once, as the agent of `node` records it. `now` is RFC 3339. */
export function eventOfAgent(node: string, event: EventOfAgent, now: string): Event {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    ...event,
    source: { component: 'kubelet', host: node },
    reportingComponent: 'kubelet',
    reportingInstance: node,
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  }
}
