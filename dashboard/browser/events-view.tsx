/** Events, the newest first, as they come. */
import type { EventCard } from '../../api/dashboard/dashboard-messages.ts'
import { ago, isFound } from '../../api/dashboard/view-words.ts'
import { hrefOf, type Place } from '../model/places.ts'
import { useFleet, useNow } from './fleet-stream.ts'
import { VirtualList } from './virtual-list.tsx'

export function EventsView({ place }: { readonly place: Extract<Place, { readonly search: string }> }) {
  const { fleet } = useFleet()
  const isWarnings = place.filters['type'] === 'warning'
  const shown = [...fleet.events.values()]
    .filter(({ warning }) => !isWarnings || warning)
    .filter(({ reason, message, object, namespace }) => isFound(place.search, [reason, message, object, namespace]))
    .sort((a, b) => b.at - a.at)
  if (fleet.rights?.events === false) return <p class="empty">You may not list the events of any namespace.</p>
  return (
    <>
      <div class="lead">
        <h1>Events</h1>
      </div>
      <div class="filters">
        <nav aria-label="Type">
          <a href={hrefOf({ ...place, filters: {} })} aria-current={!isWarnings}>
            All
          </a>
          <a href={hrefOf({ ...place, filters: { type: 'warning' } })} aria-current={isWarnings}>
            Warnings
          </a>
        </nav>
      </div>
      <EventList events={shown} />
      {fleet.isComplete && shown.length === 0 && <p class="empty">No event matches.</p>}
    </>
  )
}

/** Rows of events, with what they are about. */
export function EventList({ events }: { readonly events: readonly EventCard[] }) {
  const now = useNow()
  return (
    <VirtualList
      label="Events"
      items={events}
      keyOf={({ id }) => id}
      rowHeight={64}
      row={(event) => <EventRow event={event} now={now} />}
    />
  )
}

function EventRow({ event, now }: { readonly event: EventCard; readonly now: number }) {
  const { warning, reason, message, count = 1, at } = event
  return (
    <div class={`row event ${warning ? 'warn' : 'idle'}`}>
      <span class="dot" aria-hidden="true" />
      <span class="main">
        <strong>{reason}</strong> <About event={event} />
        <span class="why" title={message}>
          {message}
        </span>
      </span>
      <span class="cell-small">{count > 1 ? `${count} times` : ''}</span>
      <span class="cell-small">{ago(at, now)}</span>
    </div>
  )
}

function About({ event: { object, namespace } }: { readonly event: EventCard }) {
  const [kind = '', name = ''] = object.split('/')
  const place =
    kind === 'Pod'
      ? hrefOf({ view: 'pod', namespace, name })
      : kind === 'Node'
        ? hrefOf({ view: 'node', name })
        : undefined
  return place === undefined ? <span class="muted">{object}</span> : <a href={place}>{object}</a>
}
