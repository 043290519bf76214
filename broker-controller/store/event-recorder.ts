/** Events: what happened to an object, for whoever runs `kubectl describe`. Equal ones are counted, not repeated. */
import { createHash } from 'node:crypto'
import { isApiError } from '../../api/api-error.ts'
import type { Event } from '../../api/event.ts'
import type { ObjectReference } from '../../api/meta.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { Store, StoredObject } from './store.ts'

export type Occurrence = {
  readonly object: ObjectReference
  readonly type: 'Normal' | 'Warning'
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
  /** Who says so: `node-lifecycle-controller`. */
  readonly component: string
  readonly host?: string
}

export interface EventRecorder {
  /** Resolves when it is stored; rejects with the store's error. */
  record(occurrence: Occurrence): Promise<void>
}

export function eventRecorder({ store, clock }: { readonly store: Store; readonly clock: Clock }): EventRecorder {
  return {
    async record(occurrence) {
      for (let tries = 1; ; tries++) {
        const now = rfc3339(clock.wallMs())
        const fresh = eventOf(occurrence, now)
        const { name = '', namespace = '' } = fresh.metadata
        const before = await store.get('events', { namespace, name })
        try {
          await (before === undefined ? store.create('events', fresh) : store.update('events', again(before, now)))
          return
        } catch (error) {
          if (tries === 5 || !isLate(error)) throw error
        }
      }
    },
  }
}

/** Someone else wrote the same event, or its expiry removed it, between reading and writing. */
function isLate(error: unknown): boolean {
  return isApiError(error, 'Conflict') || isApiError(error, 'AlreadyExists') || isApiError(error, 'NotFound')
}

/**
 * The first event of its like. Its name is OBJECT.HEX as Kubernetes writes it, with the digits made of all that makes
 * two events equal, so that counting goes on after a restart.
 */
export function eventOf({ object, type, reason, message, component, host }: Occurrence, now: string): Event {
  const { resourceVersion: _, ...lasting } = object
  const alike = [lasting.kind, lasting.namespace, lasting.name, lasting.uid, lasting.apiVersion, lasting.fieldPath]
  const key = JSON.stringify([...alike, type, reason, message, component, host])
  const digits = createHash('sha256').update(key).digest('hex').slice(0, 16)
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${object.name ?? ''}.${digits}`, namespace: object.namespace || 'default' },
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

/** The event seen once more. */
export function again(event: StoredObject<'events'>, now: string): StoredObject<'events'> {
  return { ...event, count: (event.count ?? 1) + 1, lastTimestamp: now }
}
