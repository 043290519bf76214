/** Records Events, which `kubectl describe` shows. Equal ones are counted, not repeated (client-go, tools/record). */
import { isApiError } from '../../api/api-error.ts'
import { type Event, eventMessage, eventReason } from '../../api/event.ts'
import type { ObjectReference } from '../../api/meta.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { Store } from './store.ts'

export type Occurrence = {
  readonly object: ObjectReference
  readonly type: 'Normal' | 'Warning'
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
  /** The reporter: `node-lifecycle-controller`. */
  readonly component: string
  readonly host?: string
}

export interface EventRecorder {
  /** Resolves when it is stored; rejects with the store's error. */
  record(occurrence: Occurrence): Promise<void>
}

/** Different events that are kept for counting (client-go, events_cache.go, maxLruCacheEntries). */
const mostRemembered = 4096

export function eventRecorder({ store, clock }: { readonly store: Store; readonly clock: Clock }): EventRecorder {
  /** What was last written of each kind of event; the promise keeps equal ones in order. The oldest come first. */
  const written = new Map<string, Promise<string | undefined>>()
  const serial = eventSerial(clock)

  const write = async (occurrence: Occurrence, earlier: string | undefined): Promise<string> => {
    const now = rfc3339(clock.wallMs())
    if (earlier !== undefined && (await countAgain(store, occurrence, earlier, now))) return earlier
    const fresh = eventOf(occurrence, { now, serial: serial() })
    await store.create('events', fresh)
    return fresh.metadata.name ?? ''
  }

  return {
    async record(given) {
      const occurrence = shortened(given)
      const key = likenessOf(occurrence)
      const earlier = written.get(key)?.catch(() => undefined) ?? Promise.resolve(undefined)
      const done = earlier.then((name) => write(occurrence, name))
      written.delete(key)
      written.set(key, done)
      const [oldest] = written.keys()
      if (written.size > mostRemembered && oldest !== undefined) written.delete(oldest)
      await done
    },
  }
}

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

/** False when the event no longer exists. */
async function countAgain(store: Store, { object }: Occurrence, name: string, now: string): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    const before = await store.get('events', { namespace: namespaceOf(object), name })
    if (before === undefined) return false
    try {
      await store.update('events', { ...before, count: (before.count ?? 1) + 1, lastTimestamp: now })
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

/** Equal for events that are one event seen again, as Kubernetes counts them. */
function likenessOf({ object, type, reason, message, component, host }: Occurrence): string {
  const { kind, namespace, name, uid, apiVersion, fieldPath } = object
  return JSON.stringify([kind, namespace, name, uid, apiVersion, fieldPath, type, reason, message, component, host])
}

function namespaceOf(object: ObjectReference): string {
  return object.namespace || 'default'
}

/** The first event of its like, named OBJECT.SERIAL. */
function eventOf(
  { object, type, reason, message, component, host }: Occurrence,
  { now, serial }: { readonly now: string; readonly serial: string },
): Event {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${object.name ?? ''}.${serial}`, namespace: namespaceOf(object) },
    involvedObject: object,
    reason,
    message,
    source: { component, ...(host !== undefined && { host }) },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
    type,
    reportingComponent: component,
    reportingInstance: host ?? '',
  }
}
