/** core/v1 Event (pkg/registry/core/event/strategy.go). */
import { type Event, eventMessage, eventReason } from '../../../api/event.ts'
import { nodeOf } from '../../../api/identity.ts'
import { resources } from '../../../api/resources.ts'
import { eventProblems } from '../../../api/validation/event-validation.ts'
import { restrictEvent } from '../authorization/node-restriction.ts'
import { ageOf, type TableOf, tableColumns } from '../handlers/cells.ts'
import type { KindStrategy } from '../handlers/strategy.ts'

const eventTable: TableOf<Event> = {
  columns: tableColumns(
    'Last Seen',
    'Type',
    'Reason',
    'Object',
    'Subobject*',
    'Source*',
    'Message',
    'First Seen*',
    'Count*',
    'Name*',
  ),
  cells: (event, nowMs) => {
    const first = event.firstTimestamp ?? event.eventTime
    const last = event.series?.lastObservedTime ?? event.lastTimestamp ?? first
    return [
      ageOf(last, nowMs),
      event.type ?? '',
      event.reason ?? '',
      objectOf(event),
      event.involvedObject.fieldPath ?? '',
      sourceOf(event),
      (event.message ?? '').trim(),
      ageOf(first, nowMs),
      event.series?.count ?? (event.count || 1),
      event.metadata.name ?? '',
    ]
  },
}

function objectOf({ involvedObject: { kind = '', name = '' } }: Event): string {
  return name === '' ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`
}

function sourceOf({ source = {}, reportingComponent, reportingInstance }: Event): string {
  const component = source.component || reportingComponent || ''
  const host = source.host || reportingInstance
  return host ? `${component}, ${host}` : component
}

export const eventStrategy: KindStrategy<Event> = {
  ...resources.events,
  takesAnyFinalizer: true,
  createdByUpdate: true,
  hasNoDependents: true,
  table: eventTable,
  // AddFieldLabelConversionsForEvent in pkg/apis/core/v1/conversion.go.
  selectableFields: [
    'involvedObject.kind',
    'involvedObject.namespace',
    'involvedObject.name',
    'involvedObject.uid',
    'involvedObject.apiVersion',
    'involvedObject.resourceVersion',
    'involvedObject.fieldPath',
    'reason',
    'reportingComponent',
    'source',
    'type',
  ],
  subresources: {},
  largestBytes: 16 * 1024, // Events are many, and their messages are short.
  withDefaults: withShortTexts,
  prepareForCreate(event, { requester }) {
    // Events of one source are bounded together: a node cannot write them in the name of another.
    const host = nodeOf(requester)
    return host === undefined ? event : { ...event, source: { ...event.source, host } }
  },
  validateCreate: (event) => eventProblems(event, 'reportingComponent'),
  validateUpdate: (_, now) => eventProblems(now, 'reportingComponent'),
  nodeRestriction: { problem: restrictEvent },
}

function withShortTexts(event: Event): Event {
  const { message, reason } = event
  return {
    ...event,
    ...(message !== undefined && { message: eventMessage(message) }),
    ...(reason !== undefined && { reason: eventReason(reason) }),
  }
}
