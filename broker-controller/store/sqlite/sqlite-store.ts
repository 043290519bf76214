/**
 * The embedded store: all objects in memory, and on disk what must outlive the process. A change is seen, by readers
 * and watchers, only once it is durable; when it cannot be written its answer is an error and nothing has changed.
 */
import { ApiError } from '../../../api/api-error.ts'
import { builtInResources, type ResourceName, type ResourceRegistry } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Change, KeptObject } from '../changes.ts'
import { frozenCopy } from '../frozen-copy.ts'
import { objectImage } from '../object-image.ts'
import { jsonOf } from '../object-json.ts'
import type { ObjectKey, Store, StoreOrigin } from '../store.ts'
import { type Keeper, storeOver } from '../store-over.ts'
import { isVolatile } from '../volatile.ts'
import { openSqliteFile, type Row, type SqliteFile, unreadable } from './sqlite-file.ts'

export type SqliteStoreNeeds = {
  readonly path: string
  /** The kinds it keeps; undefined: the built-in ones. */
  readonly resources?: ResourceRegistry
  readonly clock: Clock
  readonly log: Log
  /** The longest a status or a new event waits for others to be written with. */
  readonly statusDelayMs?: number
  /** Of the last minutes at least so many changes of each kind are remembered for watches, at most twice as many. */
  readonly historyLength?: number
  /** Made anew it begins without what the fleet knows: its nodes are asked. */
  readonly learnsIfNew?: boolean
}

export interface SqliteStore extends Store {
  readonly origin: StoreOrigin
  /** All that was answered, in a new file; nobody waits for it meanwhile. */
  copyTo(path: string): Promise<void>
}

/** Versions are set aside on disk so many at a time, for leases take them too and are never written. */
const versionBlock = 100_000

/** Throws when the file is in use, damaged, or written by a newer program. */
export async function openSqliteStore(needs: SqliteStoreNeeds): Promise<SqliteStore> {
  const {
    path,
    resources = builtInResources,
    clock,
    log,
    statusDelayMs = 100,
    historyLength,
    learnsIfNew = false,
  } = needs
  const file = openSqliteFile(path, { learnsIfNew })
  const versions = versionCounter(file)
  const image = objectImage({
    resources,
    clock,
    startVersion: versions.last(),
    latestVersion: versions.last,
    ...(historyLength !== undefined && { historyLength }),
  })
  try {
    for (const { resource, body } of file.rows()) {
      const row = resources.get(resource)
      if (row !== undefined) image.load(row.id, frozenCopy(JSON.parse(body) as KeptObject))
      else log.warn('Stored object of an unknown kind left alone', { resource })
    }
  } catch (cause) {
    file.close()
    throw unreadable(path, cause)
  }

  let batch = emptyBatch()
  let failing = false

  const flush = (written: Batch) => {
    if (written !== batch || written.changes.length === 0) return
    batch = emptyBatch()
    written.delay.abort(batchWritten)
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
      written.failed(new ApiError('InternalError', `Cannot write to ${path}: ${storyOf(cause)}`, undefined, { cause }))
      return
    }
    for (const { resource, change } of written.changes) image.apply(resource, change)
    written.kept()
  }
  const flushSoon = (soon: Batch) => {
    if (!soon.urgent) setImmediate(flush, soon)
    soon.urgent = true
  }
  const flushLater = (later: Batch) => {
    if (!later.planned) void clock.sleep(statusDelayMs, later.delay.signal).then(() => flush(later))
    later.planned = true
  }

  const keeper: Keeper = {
    nextVersion: versions.next,
    present(resource, key) {
      const row = rowKey(resource, key)
      return batch.objects.has(row) ? batch.objects.get(row) : image.get(resource, key)
    },
    async keep(resource, change, what) {
      if (resource === 'leases') return image.apply(resource, change)
      const { name, namespace = '' } = change.object.metadata
      const gone = change.type === 'DELETED'
      // In the batch also when it is not written: watches receive the changes of a kind in their order.
      batch.changes.push({ resource, change, durable: !isVolatile(resource, change, what) })
      batch.objects.set(rowKey(resource, { namespace, name }), gone ? undefined : change.object)
      if (!batch.firstVersions.has(resource)) batch.firstVersions.set(resource, change.version)
      // A client that deletes many objects one after another waits for each.
      if (!gone && (what === 'status' || resource === 'events')) flushLater(batch)
      else flushSoon(batch)
      return batch.settled
    },
    async settled(resource, key) {
      if (!batch.objects.has(rowKey(resource, key))) return
      flushSoon(batch)
      await batch.settled.catch(() => undefined)
    },
    visibleVersion(resource) {
      const pending = resource === undefined ? batch.changes[0]?.change.version : batch.firstVersions.get(resource)
      return pending === undefined ? versions.last() : pending - 1
    },
    async close() {
      flush(batch)
      try {
        file.reserve(versions.last())
      } finally {
        file.close()
      }
    },
  }
  return {
    ...storeOver({ resources, image, keeper, clock }),
    origin: file.origin,
    async copyTo(target) {
      flush(batch)
      await file.copyTo(target)
    },
  }
}

/** Without a reason each batch would make an exception with its stack. */
const batchWritten = new Error('The batch is written')

/** What is written together. */
type Batch = {
  readonly changes: { readonly resource: ResourceName; readonly change: Change; readonly durable: boolean }[]
  /** Each object as it will be; undefined: deleted. */
  readonly objects: Map<string, KeptObject | undefined>
  readonly firstVersions: Map<ResourceName, number>
  readonly settled: Promise<void>
  readonly kept: () => void
  readonly failed: (error: ApiError) => void
  /** Ends the wait for more to write. */
  readonly delay: AbortController
  urgent: boolean
  planned: boolean
}

function emptyBatch(): Batch {
  let kept = () => {}
  let failed: Batch['failed'] = () => {}
  const settled = new Promise<void>((resolve, reject) => {
    kept = resolve
    failed = reject
  })
  return {
    changes: [],
    objects: new Map(),
    firstVersions: new Map(),
    settled,
    kept,
    failed,
    delay: new AbortController(),
    urgent: false,
    planned: false,
  }
}

/** Never gives a version twice, also after the process was killed: it begins where the last block set aside ended. */
function versionCounter(file: SqliteFile) {
  let reserved = file.reserved()
  let last = reserved
  return {
    last: () => last,
    next() {
      if (last >= reserved) {
        try {
          file.reserve(reserved + versionBlock)
        } catch (cause) {
          throw new ApiError('InternalError', 'Cannot set aside versions in the store', undefined, { cause })
        }
        reserved += versionBlock
      }
      last += 1
      return last
    },
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
