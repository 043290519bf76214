/**
 * Writes changes to the SQLite file in batches: those of one turn of the event loop share a transaction, statuses, renewals of leases and
 * new events wait up to `statusDelayMs` for others. Readers see a change when its transaction is durable.
 */
import { ApiError } from '../../../api/api-error.ts'
import type { ResourceName } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { ChangeWriter } from '../cached-store.ts'
import { type AnyStoredObject, type Change, withVersion } from '../changes.ts'
import type { ObjectCache } from '../object-cache.ts'
import { jsonOf } from '../object-json.ts'
import { growthOf } from '../room/growth.ts'
import { type ObjectKey, StoreFullError } from '../store.ts'
import { isVolatile, isVolatileLease } from '../volatile.ts'
import { type DiskGuard, isDiskFull } from './disk-guard.ts'
import type { Row, SqliteFile } from './sqlite-file.ts'
import type { VersionCounter } from './version-counter.ts'

export type WriteBatchesNeeds = {
  readonly path: string
  readonly file: Pick<SqliteFile, 'write' | 'reserve' | 'close' | 'freePages'>
  /** undefined: growth is refused by no lack of room. */
  readonly guard?: DiskGuard | undefined
  readonly versions: VersionCounter
  readonly cache: ObjectCache
  readonly clock: Clock
  readonly log: Log
  readonly statusDelayMs: number
}

export interface WriteBatches extends ChangeWriter {
  /** Writes at once what is waiting. */
  flush(): void
}

export function writeBatches(needs: WriteBatchesNeeds): WriteBatches {
  const { path, file, guard, versions, cache, clock, log, statusDelayMs } = needs
  let batch = emptyBatch()
  let failing = false

  const flush = (written: Batch) => {
    if (written !== batch || written.changes.length === 0) return
    batch = emptyBatch()
    written.delay?.abort(batchWritten)
    try {
      const rows = written.changes.filter(({ durable }) => durable).map(rowOf)
      if (rows.length > 0) {
        file.write(rows)
        if (failing) log.info('Store writes again', { path })
        failing = false
      }
    } catch (cause) {
      if (!failing) log.error('Store cannot write', { path, error: cause, changes: written.changes.length })
      failing = true
      written.reject(failureOf(path, cause))
      return
    }
    for (const { resource, change } of written.changes) cache.apply(resource, change)
    written.resolve()
  }
  const flushSoon = (soon: Batch) => {
    if (!soon.urgent) setImmediate(flush, soon)
    soon.urgent = true
  }
  const flushLater = (later: Batch) => {
    if (later.delay !== undefined) return
    later.delay = new AbortController()
    void clock.sleep(statusDelayMs, later.delay.signal).then(() => flush(later))
  }

  const presentObject = (resource: ResourceName, key: ObjectKey) => {
    const row = rowKey(resource, key)
    return batch.objects.has(row) ? batch.objects.get(row) : cache.get(resource, key)
  }
  /** Settles when the change is written; undefined: readers see it already. */
  const persist = (resource: ResourceName, change: Change, part: 'whole' | 'status'): Promise<void> | undefined => {
    const { name, namespace = '' } = change.object.metadata
    if (isVolatileLease(resource, { namespace, name })) {
      // Watches receive the changes of a kind in their order.
      if (batch.firstVersions.has(resource)) flush(batch)
      cache.apply(resource, change)
      return undefined
    }
    // A volatile change is in the batch, too: watches receive the changes of a kind in their order.
    batch.changes.push({ resource, change, durable: !isVolatile(resource, change, part) })
    batch.objects.set(rowKey(resource, { namespace, name }), change.type === 'DELETED' ? undefined : change.object)
    if (!batch.firstVersions.has(resource)) batch.firstVersions.set(resource, change.version)
    if (mayWait(resource, change, part)) flushLater(batch)
    else flushSoon(batch)
    return batch.settled
  }
  /** Resolves when readers see what `presentObject` returned. */
  const settled = async (resource: ResourceName, key: ObjectKey) => {
    if (!batch.objects.has(rowKey(resource, key))) return
    flushSoon(batch)
    await batch.settled.catch(() => undefined)
  }

  return {
    async write(resource, key, decide, part) {
      const present = presentObject(resource, key)
      let change: Change | undefined
      try {
        const draft = decide(present)
        change = draft && withVersion(draft, versions.next())
        if (change !== undefined && guard !== undefined && isDurable(resource, key, change, part)) {
          batch.bytes += admitted(guard, file, batch, change, part)
        }
      } catch (error) {
        await settled(resource, key)
        throw error
      }
      if (change === undefined) await settled(resource, key)
      else await persist(resource, change, part)
      return change?.object ?? present
    },
    visibleVersion(resource) {
      const pending = resource === undefined ? batch.changes[0]?.change.version : batch.firstVersions.get(resource)
      return pending === undefined ? versions.last() : pending - 1
    },
    flush: () => flush(batch),
    async close() {
      flush(batch)
      try {
        file.reserve(versions.last())
      } finally {
        file.close()
      }
    },
  }
}

function isDurable(resource: ResourceName, key: ObjectKey, change: Change, part: 'whole' | 'status'): boolean {
  return !isVolatileLease(resource, key) && !isVolatile(resource, change, part)
}

/** The bytes of the change. Throws StoreFullError where the disk has no room for them. */
function admitted(
  guard: DiskGuard,
  file: WriteBatchesNeeds['file'],
  batch: Batch,
  change: Change,
  part: 'whole' | 'status',
): number {
  if (change.type === 'DELETED') return 0
  const bytes = Buffer.byteLength(jsonOf(change.object))
  guard.admit(() => growthOf(change, part), batch.bytes + bytes, file.freePages)
  return bytes
}

function failureOf(path: string, cause: unknown): ApiError {
  const message = `Cannot write to ${path}: ${storyOf(cause)}`
  return isDiskFull(cause)
    ? new StoreFullError(`${message}. Free space on its disk`, { cause })
    : new ApiError('InternalError', message, undefined, { cause })
}

/** Without a reason each batch would make an exception with its stack. */
const batchWritten = new Error('The batch is written')

/** Whether it can wait to share a transaction with others. A client that deletes many objects one after another waits for each. */
function mayWait(resource: ResourceName, { type }: Change, part: 'whole' | 'status'): boolean {
  if (type === 'DELETED') return false
  return part === 'status' || resource === 'events' || (resource === 'leases' && type === 'MODIFIED')
}

/** Changes that are written in one transaction. */
type Batch = {
  readonly changes: { readonly resource: ResourceName; readonly change: Change; readonly durable: boolean }[]
  /** Each object after the batch; undefined: deleted. */
  readonly objects: Map<string, AnyStoredObject | undefined>
  readonly firstVersions: Map<ResourceName, number>
  /** Settles when the batch is written, or has failed. */
  readonly settled: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: ApiError) => void
  /** Length of the JSON of its objects. */
  bytes: number
  /** Ends the wait for more changes. */
  delay: AbortController | undefined
  urgent: boolean
}

function emptyBatch(): Batch {
  let resolve = () => {}
  let reject: Batch['reject'] = () => {}
  const settled = new Promise<void>((onWritten, onFailed) => {
    resolve = onWritten
    reject = onFailed
  })
  return {
    changes: [],
    objects: new Map(),
    firstVersions: new Map(),
    settled,
    resolve,
    reject,
    bytes: 0,
    delay: undefined,
    urgent: false,
  }
}

function rowKey(resource: ResourceName, { namespace, name }: ObjectKey): string {
  return `${resource}/${namespace}/${name}`
}

function rowOf({ resource, change }: Batch['changes'][number]): Row {
  const { name, namespace = '' } = change.object.metadata
  const body = change.type === 'DELETED' ? null : jsonOf(change.object)
  return { resource, namespace, name, version: change.version, body }
}
