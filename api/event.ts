/** core/v1 Event: something happened to an object, for whoever runs `kubectl describe`. */
import { ObjectMetaSchema, ObjectReferenceSchema } from './meta.ts'
import { type Described, integer, microTime, object, oneOf, optional, text, time } from './schema.ts'

export const EventSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Event'),
  metadata: ObjectMetaSchema,
  involvedObject: ObjectReferenceSchema,
  reason: optional(text),
  message: optional(text),
  source: optional(object({ component: optional(text), host: optional(text) })),
  firstTimestamp: optional(time),
  lastTimestamp: optional(time),
  count: optional(integer),
  type: optional(text),
  eventTime: optional(microTime),
  series: optional(object({ count: optional(integer), lastObservedTime: optional(microTime) })),
  action: optional(text),
  related: optional(ObjectReferenceSchema),
  reportingComponent: optional(text),
  reportingInstance: optional(text),
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

export type EventOfAgent = Pick<Event, 'metadata' | 'involvedObject'> & {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

/** One that happened once, as the agent of `node` tells it. `now` is RFC 3339. */
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
