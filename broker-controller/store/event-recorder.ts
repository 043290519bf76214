/** Records Events, which `kubectl describe` shows. Equal ones are counted, and similar ones combined (client-go, tools/record). */
import { isApiError } from '../../api/api-error.ts'
import { type Event, eventMessage, eventReason } from '../../api/event.ts'
import type { ObjectReference } from '../../api/meta.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { type Correlated, eventCorrelator, mostRemembered, type Occurrence } from './event-correlation.ts'
import type { Store } from './store.ts'

export interface EventRecorder {
  /** Resolves when it is stored, or not to be stored now; rejects with the store's error. */
  record(occurrence: Occurrence): Promise<void>
}

export function eventRecorder({ store, clock }: { readonly store: Store; readonly clock: Clock }): EventRecorder {
  /** What was last written of each kind of event; the promise keeps equal ones in order. The oldest come first. */
  const written = new Map<string, Promise<string | undefined>>()
  const serial = eventSerial(clock)
  const correlator = eventCorrelator(clock)

  const write = async (seen: Seen, earlier: string | undefined): Promise<string> => {
    const nowMs = clock.wallMs()
    if (earlier !== undefined && (await countAgain(store, seen, earlier, rfc3339(nowMs)))) return earlier
    const fresh = eventOf(seen, { nowMs, serial: serial() })
    await store.create('events', fresh)
    return fresh.metadata.name ?? ''
  }

  return {
    async record(given) {
      const occurrence = shortened(given)
      const correlated = correlator.correlate(occurrence)
      if (correlated === undefined) return
      const { key } = correlated
      const earlier = written.get(key)?.catch(() => undefined) ?? Promise.resolve(undefined)
      const done = earlier.then((name) => write({ ...occurrence, ...correlated }, name))
      written.delete(key)
      written.set(key, done)
      const [oldest] = written.keys()
      if (written.size > mostRemembered && oldest !== undefined) written.delete(oldest)
      await done
    },
  }
}

type Seen = Occurrence & Correlated

/** Cut to the limits of an Event. */
function shortened(occurrence: Occurrence): Occurrence {
  const { object, reason, message, component, host } = occurrence
  const short = Object.entries(object).map(([field, text]) => [field, text?.slice(0, longestReference)] as const)
  return {
    ...occurrence,
    object: Object.fromEntries(short),
    reason: eventReason(reason),
    message: eventMessage(message),
    component: component.slice(0, longestName),
    ...(host !== undefined && { host: host.slice(0, longestName) }),
  }
}

const longestName = 253
/** A field path may be longer than a name. */
const longestReference = 512

/** The count is a 32-bit integer. */
const mostCounted = 2 ** 31 - 1

/** False when the event no longer exists. */
async function countAgain(
  store: Store,
  { object, message, times }: Seen,
  name: string,
  lastTimestamp: string,
): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    const before = await store.get('events', { namespace: namespaceOf(object), name })
    if (before === undefined) return false
    try {
      const count = Math.min((before.count ?? 1) + times, mostCounted)
      await store.update('events', { ...before, message, count, lastTimestamp })
      return true
    } catch (error) {
      if (tries === 5 || !isLate(error)) throw error
    }
  }
}

/** Nanoseconds since 1970 in hexadecimal, each later than the one before: names then sort as their events happened. */
function eventSerial(clock: Clock): () => string {
  let last = 0n
  return () => {
    const now = BigInt(Math.round(clock.wallMs())) * 1_000_000n
    last = now > last ? now : last + 1n
    return last.toString(16)
  }
}

/** Someone else wrote the event, or its expiry removed it, between reading and writing. */
function isLate(error: unknown): boolean {
  return isApiError(error, 'Conflict') || isApiError(error, 'NotFound')
}

function namespaceOf(object: ObjectReference): string {
  return object.namespace || 'default'
}

/** The first event of its like, named OBJECT.SERIAL. */
function eventOf(
  { object, type, reason, message, component, host, times, agoMs }: Seen,
  { nowMs, serial }: { readonly nowMs: number; readonly serial: string },
): Event {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${object.name ?? ''}.${serial}`, namespace: namespaceOf(object) },
    involvedObject: object,
    reason,
    message,
    source: { component, ...(host !== undefined && { host }) },
    firstTimestamp: rfc3339(nowMs - agoMs),
    lastTimestamp: rfc3339(nowMs),
    count: Math.min(times, mostCounted),
    type,
    reportingComponent: component,
    reportingInstance: host ?? '',
  }
}
