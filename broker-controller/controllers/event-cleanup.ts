/** Deletes Events after an hour, and the oldest when there are too many. */
import { isApiError } from '../../api/api-error.ts'
import type { Event } from '../../api/event.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { Store, StoredObject } from '../store/store.ts'

export type EventCleanupSettings = {
  readonly periodMs: number
  /** Kubernetes' --event-ttl. */
  readonly lifetimeMs: number
  readonly max: number
  /** Limit of the Events with one `source.host`: a node that reports without end removes only its own Events. */
  readonly maxPerHost: number
}

export const defaultEventCleanup: EventCleanupSettings = {
  periodMs: 60_000,
  lifetimeMs: 3_600_000,
  max: 20_000,
  maxPerHost: 1000,
}

export type EventCleanupNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

export function eventCleanup(
  { store, clock, log }: EventCleanupNeeds,
  settings: EventCleanupSettings = defaultEventCleanup,
): Loop {
  return {
    name: 'event-cleanup',
    async run(signal) {
      while (!signal.aborted) {
        try {
          const { items } = await store.list('events')
          await removeAll(store, expiredEvents(items, clock.wallMs(), settings))
        } catch (error) {
          log.warn('Old events not removed', { error })
        }
        await clock.sleep(settings.periodMs, signal)
      }
    },
  }
}

/** Removes them a thousand at a time, for the store writes together what is asked for together. Rejects with the first failure. */
async function removeAll(store: Store, events: readonly StoredObject<'events'>[]): Promise<void> {
  for (let at = 0; at < events.length; at += 1000) {
    const removals = events
      .slice(at, at + 1000)
      .map(async ({ metadata: { name, namespace = '', uid, resourceVersion } }) => {
        await store.delete('events', { namespace, name }, { uid, resourceVersion })
      })
    for (const result of await Promise.allSettled(removals)) {
      if (result.status === 'rejected' && !isLate(result.reason)) throw result.reason
    }
  }
}

/** It is gone already, or has just happened again. */
function isLate(error: unknown): boolean {
  return isApiError(error, 'NotFound') || isApiError(error, 'Conflict')
}

/**
 * Which of these may go: those that did not happen again within the lifetime, the oldest of a host beyond `maxPerHost`,
 * and the oldest of all beyond `max`. The oldest first.
 */
export function expiredEvents<E extends Event>(
  events: readonly E[],
  now: number,
  { lifetimeMs, max, maxPerHost }: Pick<EventCleanupSettings, 'lifetimeMs' | 'max' | 'maxPerHost'>,
): readonly E[] {
  const dated = events.map((event) => ({ event, at: lastSeenMs(event) })).sort((a, b) => a.at - b.at)
  const surplus = new Map<string, number>()
  for (const { source } of events) {
    if (source?.host) surplus.set(source.host, (surplus.get(source.host) ?? -maxPerHost) + 1)
  }
  const isSurplus = ({ source }: Event) => {
    const left = surplus.get(source?.host ?? '') ?? 0
    if (left > 0) surplus.set(source?.host ?? '', left - 1)
    return left > 0
  }
  const gone = new Set(dated.filter(({ event, at }) => isSurplus(event) || now - at >= lifetimeMs))
  let tooMany = dated.length - gone.size - max
  for (const one of dated) {
    if (tooMany <= 0) break
    if (!gone.has(one)) tooMany -= 1
    gone.add(one)
  }
  return dated.filter((one) => gone.has(one)).map(({ event }) => event)
}

/** An event without a readable time is the oldest of all. */
function lastSeenMs({ series, lastTimestamp, eventTime, metadata }: Event): number {
  const last = series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp
  return Date.parse(last ?? '') || 0
}
