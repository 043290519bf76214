/** events.k8s.io/v1 Event: the Event of core/v1 with other names for its fields. One object is served as both. */
import { type Event, EventSchema } from './event.ts'
import { ObjectMetaSchema, ObjectReferenceSchema } from './meta.ts'
import { type Described, field, integer, microTime, object, oneOf, optional, pointer, text, time } from './schema.ts'

const { source } = EventSchema.properties

export const EventV1Schema = object({
  apiVersion: oneOf('events.k8s.io/v1'),
  kind: oneOf('Event'),
  metadata: field(1, ObjectMetaSchema),
  eventTime: field(2, optional(microTime)),
  series: pointer(
    3,
    optional(
      object('events.v1.EventSeries', { count: field(1, integer), lastObservedTime: field(2, optional(microTime)) }),
    ),
  ),
  reportingController: field(4, optional(text)),
  reportingInstance: field(5, optional(text)),
  action: field(6, optional(text)),
  reason: field(7, optional(text)),
  regarding: field(8, optional(ObjectReferenceSchema)),
  related: pointer(9, optional(ObjectReferenceSchema)),
  note: field(10, optional(text)),
  type: field(11, optional(text)),
  deprecatedSource: field(12, source),
  deprecatedFirstTimestamp: field(13, optional(time)),
  deprecatedLastTimestamp: field(14, optional(time)),
  deprecatedCount: field(15, optional(integer)),
})
export type EventV1 = Described<typeof EventV1Schema>

/** Field selectors of events.k8s.io/v1, and the fields of the stored object that they compare (pkg/apis/events/v1/conversion.go). */
export const eventV1Fields: { readonly [name: string]: string } = {
  ...Object.fromEntries(
    ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map((name) => [
      `regarding.${name}`,
      `involvedObject.${name}`,
    ]),
  ),
  reason: 'reason',
  reportingController: 'reportingComponent',
  type: 'type',
}

/** The same Event as core/v1 names it. */
export function eventOfV1(event: EventV1): Event {
  const { regarding, note, reportingController, deprecatedSource, deprecatedFirstTimestamp, ...rest } = event
  const { deprecatedLastTimestamp, deprecatedCount, ...same } = rest
  return {
    ...same,
    apiVersion: 'v1',
    involvedObject: regarding ?? {},
    ...given({
      message: note,
      reportingComponent: reportingController,
      source: deprecatedSource,
      firstTimestamp: deprecatedFirstTimestamp,
      lastTimestamp: deprecatedLastTimestamp,
      count: deprecatedCount,
    }),
  }
}

/** The same Event as events.k8s.io/v1 names it. */
export function eventV1Of(event: Event): EventV1 {
  const { involvedObject, message, reportingComponent, source, firstTimestamp, lastTimestamp, count, ...same } = event
  const { series, ...rest } = same
  return {
    ...rest,
    apiVersion: 'events.k8s.io/v1',
    regarding: involvedObject,
    ...given({
      series: series && { ...series, count: series.count ?? 0 },
      note: message,
      reportingController: reportingComponent,
      deprecatedSource: source,
      deprecatedFirstTimestamp: firstTimestamp,
      deprecatedLastTimestamp: lastTimestamp,
      deprecatedCount: count,
    }),
  }
}

type Given<T> = { readonly [Field in keyof T]?: Exclude<T[Field], undefined> }

function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>
}
