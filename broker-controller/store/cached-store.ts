/**
 * A store whose reads and watches are answered from a cache in memory. A `ChangeWriter` decides what may be written, and
 * writes it: into this memory, into SQLite, or to a server such as etcd.
 */
import { randomUUID } from 'node:crypto'
import { ApiError } from '../../api/api-error.ts'
import { isCustomName, type Resource, type ResourceName, type ResourceRegistry } from '../../api/resources.ts'
import { uuidOf } from '../../api/text/uuid.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { type AnyStoredObject, created, type DraftChange, deleted, keyOf, statusUpdated, updated } from './changes.ts'
import { eachChange } from './each-change.ts'
import type { ObjectCache } from './object-cache.ts'
import { refuseBeyond, type StoreLimits } from './room/store-limits.ts'
import type { ChangeCursor, ObjectKey, Store, StoredObject, WatchEvent } from './store.ts'
import { isVolatileLease } from './volatile.ts'

/** Decides on a change of the present object; undefined: nothing changes. Throws ApiError. */
export type Decide = (present: AnyStoredObject | undefined) => DraftChange | undefined

/** Writes the changes that a store decides on. No change of one object is decided on a version that another change has replaced. */
export interface ChangeWriter {
  /**
   * Calls `decide` with the latest object, as often as it takes. Resolves with the object as it was written, which has the
   * version of the change, or with the present one if nothing changes; readers of the cache see it by then. What `decide`
   * throws is thrown when readers see the object that it was given: reading and trying again then works.
   */
  write(
    resource: ResourceName,
    key: ObjectKey,
    decide: Decide,
    part: 'whole' | 'status',
  ): Promise<AnyStoredObject | undefined>
  /** Up to this version every change (of this kind) is in the cache. */
  visibleVersion(resource?: ResourceName): number
  close(): Promise<void>
}

export type CachedStoreNeeds = {
  readonly resources: ResourceRegistry
  readonly cache: ObjectCache
  readonly writer: ChangeWriter
  readonly clock: Clock
  readonly random?: () => number
  /** Creations beyond these are refused. undefined: none is. */
  readonly limits?: StoreLimits | undefined
}

/** Takes over `cache` and `writer`: closing the store closes both. */
export function cachedStore({ resources, cache, writer, clock, random, limits }: CachedStoreNeeds): Store {
  let closed = false
  const rowOf = (id: ResourceName): Resource => {
    const row = resources.get(id)
    if (row !== undefined) return row
    if (!isCustomName(id)) throw new TypeError(`No such resource: ${id}`)
    // Its definition went since the request was routed.
    throw new ApiError('NotFound', 'the server could not find the requested resource', {})
  }
  const stamp = {
    uid: () => (random === undefined ? randomUUID() : uuidOf(random)),
    now: () => rfc3339(clock.wallMs()),
  }
  /** Not async: each promise more between a client and its batch is paid for with every write. Throws once the store is closed. */
  const write = <R extends ResourceName>(
    resource: R,
    key: ObjectKey,
    decide: Decide,
    part: 'whole' | 'status' = 'whole',
  ): Promise<StoredObject<R>> => {
    if (closed) throw new ApiError('ServiceUnavailable', 'The store is closed', { retryAfterSeconds: 1 })
    const admitted: Decide = (present) => {
      const draft = decide(present)
      // Leases of nodes are in memory only, and made again at each start: without them no node would be Ready.
      const isCounted = draft !== undefined && !isVolatileLease(resource, key)
      if (limits !== undefined && isCounted) refuseBeyond(limits, cache.sizes, rowOf(resource), draft, part)
      return draft
    }
    return writer.write(resource, key, admitted, part) as Promise<StoredObject<R>>
  }

  const changesOf = <R extends ResourceName>(resource: R, from: number) =>
    cache.changes(resource, from) as unknown as ChangeCursor<WatchEvent<R>>

  return {
    async get<R extends ResourceName>(resource: R, key: ObjectKey) {
      return cache.get(resource, key) as StoredObject<R> | undefined
    },
    async list<R extends ResourceName>(resource: R, namespace?: string) {
      const items = cache.list(resource, namespace) as readonly StoredObject<R>[]
      return { items, resourceVersion: String(writer.visibleVersion(resource)) }
    },
    podsOfNode: async (nodeName) => cache.podsOf(nodeName) as readonly StoredObject<'pods'>[],
    async create(resource, object) {
      const row = rowOf(resource)
      const key = keyOf(row, object.metadata)
      return write(resource, key, (present) => created(row, present, object, stamp))
    },
    async update(resource, object, generation) {
      const row = rowOf(resource)
      const key = keyOf(row, object.metadata)
      return write(resource, key, (present) => updated(row, present, object, generation))
    },
    async updateStatus(resource, object) {
      const row = rowOf(resource)
      const key = keyOf(row, object.metadata)
      return write(resource, key, (present) => statusUpdated(row, present, object), 'status')
    },
    async delete(resource, key, preconditions = {}) {
      const row = rowOf(resource)
      return write(resource, key, (present) => deleted(row, present, key, preconditions))
    },
    watch<R extends ResourceName>(resource: R, from: string | undefined, signal: AbortSignal) {
      const version = from === undefined ? writer.visibleVersion(resource) : Number(from)
      return eachChange(changesOf(resource, version), signal)
    },
    changes: (resource, from) => changesOf(resource, Number(from)),
    version: async (resource) => String(writer.visibleVersion(resource)),
    async close() {
      if (closed) return
      closed = true
      await writer.close()
      cache.close()
    },
  }
}
