/** Validates Events (pkg/apis/core/validation/events.go). */
import type { Event } from '../event.ts'
import { qualifiedNameProblem } from '../names.ts'
import { invalid, type Problem, required } from '../problem.ts'
import { problemsWith } from './metadata-validation.ts'

/** Problems of an Event in both versions. `controllerField`: the version's name of the reporting component. */
export function eventProblems(event: Event, controllerField: string): readonly Problem[] {
  const { metadata, involvedObject, eventTime } = event
  const [own = '', about = ''] = [metadata.namespace, involvedObject.namespace]
  const elsewhere = invalid('involvedObject.namespace', about, 'does not match event.namespace')
  if (eventTime === undefined) {
    const isSame = about === '' ? own === '' || own === 'default' : about === own
    return isSame ? [] : [elsewhere]
  }
  const { reportingComponent = '', reportingInstance = '', action = '', reason = '', message = '' } = event
  return [
    ...(about === '' && own !== 'default' && own !== 'kube-system' ? [elsewhere] : []),
    ...(reportingComponent === '' ? [required(controllerField)] : []),
    ...problemsWith(controllerField, reportingComponent, qualifiedNameProblem),
    ...boundedText('reportingInstance', reportingInstance),
    ...boundedText('action', action),
    ...boundedText('reason', reason),
    ...(message.length > 1024 ? [invalid('message', '', 'can have at most 1024 characters')] : []),
  ]
}

function boundedText(field: string, text: string): readonly Problem[] {
  if (text === '') return [required(field)]
  return text.length > 128 ? [invalid(field, '', 'can have at most 128 characters')] : []
}

/** Problems of a new Event of events.k8s.io/v1. */
export function newEventProblems(event: Event): readonly Problem[] {
  const { eventTime, type = '', firstTimestamp, lastTimestamp, count = 0, source = {} } = event
  const unset = (field: string) => invalid(field, '', 'needs to be unset')
  return [
    ...eventProblems(event, 'reportingController'),
    ...seriesProblems(event),
    ...(eventTime === undefined ? [required('eventTime')] : []),
    ...(type === 'Normal' || type === 'Warning' ? [] : [invalid('type', '', `has invalid value: ${type}`)]),
    ...(firstTimestamp === undefined ? [] : [unset('firstTimestamp')]),
    ...(lastTimestamp === undefined ? [] : [unset('lastTimestamp')]),
    ...(count === 0 ? [] : [unset('count')]),
    ...(source.component || source.host ? [unset('source')] : []),
  ]
}

const fixed = [
  ...(['involvedObject', 'reason', 'message', 'source', 'firstTimestamp', 'lastTimestamp', 'count', 'type'] as const),
  ...(['eventTime', 'action', 'related', 'reportingComponent', 'reportingInstance'] as const),
]

/** Problems of a changed Event of events.k8s.io/v1: only its series and its metadata may change. */
export function changedEventProblems(old: Event, now: Event): readonly Problem[] {
  const differs = (field: keyof Event) => textOf(old[field]) !== textOf(now[field])
  return [
    ...eventProblems(now, 'reportingController'),
    ...(differs('series') ? seriesProblems(now) : []),
    ...fixed.filter(differs).map((field) => {
      const name = field === 'reportingComponent' ? 'reportingController' : field
      return invalid(name, now[field] ?? null, 'field is immutable')
    }),
  ]
}

function seriesProblems({ series }: Event): readonly Problem[] {
  if (series === undefined) return []
  return [
    ...((series.count ?? 0) < 2 ? [invalid('series.count', '', 'should be at least 2')] : []),
    ...(series.lastObservedTime === undefined ? [required('series.lastObservedTime')] : []),
  ]
}

/** The same for equal values, in whichever order their fields are; nothing is the same as an empty value. */
function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '{}'
  return JSON.stringify(Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))))
}
