/**
 * How many Events one source stores about one object: the rules of client-go's EventCorrelator (tools/record/events_cache.go). Decides
 * only, and writes nothing.
 */
import { digestText } from '../../api/digest.ts'
import { eventMessage, eventsOfObject } from '../../api/event.ts'
import type { ObjectReference } from '../../api/meta.ts'
import type { Clock } from '../../daemon/clock.ts'
import { expiringMap } from '../../daemon/limits/expiring-map.ts'
import { tokenBuckets } from '../../daemon/limits/token-bucket.ts'

export type Occurrence = {
  readonly object: ObjectReference
  readonly type: 'Normal' | 'Warning'
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
  /** The reporter: `node-lifecycle-controller`. */
  readonly component: string
  readonly host?: string
  /** How often it happened; once, where it is absent. */
  readonly times?: number
  /** The reporter has kept the limit for each object itself, as agents do, which forget it with their machine's boot. */
  readonly isLimited?: true
}

export type Correlated = {
  /** Equal for occurrences that are one Event, which is counted. */
  readonly key: string
  /** Message of this occurrence, or of the Event that stands for many similar ones. */
  readonly message: string
  /** How often it happened since it was recorded last. */
  readonly times: number
  /** How long ago the first of these was; 0: now. */
  readonly agoMs: number
}

export interface EventCorrelator {
  /** Undefined: it is not recorded now. The next of its like that is recorded counts it, too. */
  correlate(occurrence: Occurrence): Correlated | undefined
}

/** maxLruCacheEntries: Events, groups of similar ones, and objects that are remembered, of each. */
export const mostRemembered = 4096
/** defaultAggregateMaxEvents: of this many similar Events the last, and those after it, are combined. */
const mostSimilar = 10
/** defaultAggregateIntervalInSeconds: Events are similar while at most this time is between two of them. */
const similarMs = 10 * 60_000
/** How long what was not recorded is counted: as long as an Event is kept, without other settings. */
const countedMs = 60 * 60_000

export function eventCorrelator(clock: Pick<Clock, 'monotonicMs'>): EventCorrelator {
  const limit = tokenBuckets(eventsOfObject, clock, mostRemembered)
  /** Digests of the different messages of similar Events: the messages themselves could take 40 MB. */
  const similar = expiringMap<ReadonlySet<string>>(clock, similarMs, mostRemembered)
  const uncounted = expiringMap<{ readonly times: number; readonly firstMs: number }>(clock, countedMs, mostRemembered)

  const isCombined = (group: string, message: string): boolean => {
    const messages = similar.get(group) ?? new Set()
    const digest = digestText('', message)
    const isOneTooMany = !messages.has(digest) && messages.size + 1 >= mostSimilar
    similar.set(group, isOneTooMany ? messages : new Set([...messages, digest]))
    return isOneTooMany
  }

  return {
    correlate(occurrence) {
      const { message } = occurrence
      const nowMs = clock.monotonicMs()
      const { source, group, single } = keysOf(occurrence)
      const combined = isCombined(group, message)
      const key = combined ? group : single
      const before = uncounted.get(key)
      const times = (before?.times ?? 0) + (occurrence.times ?? 1)
      const firstMs = before?.firstMs ?? nowMs
      if (!occurrence.isLimited && limit.take(source) > 0) {
        uncounted.set(key, { times, firstMs })
        return undefined
      }
      uncounted.delete(key)
      return { key, message: combined ? combinedMessage(message) : message, times, agoMs: nowMs - firstMs }
    },
  }
}

/** EventAggregatorByReasonMessageFunc. */
function combinedMessage(message: string): string {
  return eventMessage(`(combined from similar events): ${message}`)
}

/** `source`: getSpamKey; `group`: EventAggregatorByReasonFunc; `single`: getEventKey. The version of the object counts in none. */
function keysOf({ object, type, reason, message, component, host }: Occurrence) {
  const { kind, namespace, name, uid, apiVersion, fieldPath } = object
  const source = [component, host, kind, namespace, name, uid, apiVersion, type]
  return {
    source: JSON.stringify(source),
    group: JSON.stringify([...source, reason]),
    single: JSON.stringify([...source, reason, fieldPath, message]),
  }
}
