/**
 * All objects of the store in memory: read once, and followed by one watch of all keys, which resumes after the last revision that
 * was applied. So no change is left out and none is applied twice.
 */
import { type ResourceName, type ResourceRegistry, storedName } from '../../../api/resources.ts'
import { backoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { startDeadline } from '../../../daemon/deadline.ts'
import type { Log } from '../../../daemon/log.ts'
import { type AnyStoredObject, withVersion } from '../changes.ts'
import type { ObjectCache } from '../object-cache.ts'
import type { ObjectKey } from '../store.ts'
import { isVolatileLease } from '../volatile.ts'
import type { EtcdClient, EtcdStream } from './etcd-client.ts'
import { isWithoutSpace } from './etcd-error.ts'
import type { EtcdKeys, StoredKey } from './etcd-keys.ts'
import { eventType, type KeyValue, methods, type WatchResponse } from './etcd-messages.ts'
import { readRange } from './etcd-range.ts'
import type { EtcdValues } from './etcd-values.ts'
import type { StoredLeases } from './stored-leases.ts'

export type ImageNeeds = {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly values: EtcdValues
  readonly resources: ResourceRegistry
  /** Those that `readObjects` returned are in it. */
  readonly leases: StoredLeases
  /** What `readObjects` returned is in it. */
  readonly cache: ObjectCache
  /** Revision of the objects in the cache. */
  readonly revision: number
  readonly clock: Clock
  readonly log: Log
}

export interface EtcdImage {
  get(resource: ResourceName, key: ObjectKey): AnyStoredObject | undefined
  /** The revision of the key's last change that is applied; 0: there is no such object. */
  revisionOf(resource: ResourceName, key: ObjectKey): number
  /** Every change up to this revision is applied. */
  revision(): number
  /** Resolves with true when `isTrue` holds, which is looked at after each change; with false after `ms`, and at the end. */
  until(isTrue: () => boolean, ms: number): Promise<boolean>
  /** Resolves with true when everything is applied that was written before the call; with false after `ms`. Rejects with EtcdError. */
  latest(ms: number): Promise<boolean>
  close(): void
}

const retry = { firstMs: 50, maxMs: 1_000 }
/** Changes that are under way arrive earlier. */
const arrivalMs = 20

export type StoredObjects = {
  readonly revision: number
  readonly objects: ReadonlyMap<ResourceName, readonly AnyStoredObject[]>
}

/** Every object, by kind; kinds without one are there, too. Values of unknown kinds are left alone. Throws as `EtcdValues.decode`. */
export async function readObjects({
  client,
  keys,
  values,
  resources,
  log,
}: Omit<ImageNeeds, 'cache' | 'leases' | 'revision'>): Promise<StoredObjects> {
  const objects = new Map<ResourceName, AnyStoredObject[]>(resources.all.map(({ id }) => [id, []]))
  const revision = await readRange(client, keys.all, (page) => {
    for (const { key, value, modRevision } of page) {
      const parsed = keys.parse(key)
      if (parsed === undefined) continue
      const name = storedName(parsed.resource, resources)
      if (name === undefined) log.warn('Stored object of an unknown kind ignored', { resource: parsed.resource })
      else if (!isVolatileLease(name, parsed)) {
        const found = objects.get(name) ?? []
        found.push(values.decode(parsed, value, modRevision))
        objects.set(name, found)
      }
    }
  })
  return { revision, objects }
}

/** Begins to watch at once. */
export function etcdImage(needs: ImageNeeds): EtcdImage {
  const { client, keys, cache, leases, clock, log } = needs
  let revision = needs.revision
  let stream: EtcdStream | undefined
  let failures = 0
  const closing = new AbortController()
  const waiting = waiters(clock)

  const advance = (to: number) => {
    if (to > revision) revision = to
    waiting.look()
  }

  const applyEvents = (events: WatchResponse['events']) => {
    for (const { type, kv } of events) {
      // A repeated response: some of it may have been applied.
      if (kv === undefined || kv.modRevision <= revision) continue
      applyChange(needs, type, kv)
      // A transaction of others has several changes of one revision, which fragments may divide.
      revision = kv.modRevision - 1
    }
  }
  const take = (answer: WatchResponse) => {
    if (answer.canceled) return void end(answer.cancelReason, answer.compactRevision > 0)
    if (failures > 1) log.info('Watch of etcd resumed', { revision })
    failures = 0
    applyEvents(answer.events)
    if (answer.fragment) return
    revision = Math.max(revision, answer.events.at(-1)?.kv?.modRevision ?? 0)
    const isProgress = answer.events.length === 0 && !answer.created
    advance(isProgress ? (answer.header?.revision ?? 0) : 0)
  }
  const watch = () => {
    const request = { ...keys.all, startRevision: revision + 1, progressNotify: true, fragment: true }
    stream = client.stream(
      methods.watch,
      { create: request },
      { message: take, end: (error) => void end(error.message) },
    )
  }
  /** `isReadAgain`: what was changed since `revision` cannot be watched. */
  const end = async (reason: string, isReadAgain = false): Promise<void> => {
    stream?.close()
    stream = undefined
    if (closing.signal.aborted) return
    // The first end may be that of a member: once for each time without etcd.
    if (failures === 1) log.warn('Watch of etcd ended', { reason, revision })
    await clock.sleep(backoffMs(failures++, retry, clock.random ?? Math.random), closing.signal)
    if (closing.signal.aborted) return
    for (let attempts = 0; isReadAgain && !(await hasReplacedAll(reason, attempts)); attempts++) {
      await clock.sleep(backoffMs(attempts, retry, clock.random ?? Math.random), closing.signal)
      if (closing.signal.aborted) return
    }
    watch()
  }
  /** Changes in between are not known one by one: watches of the kinds that changed are Expired. */
  const replaceAll = async (reason: string) => {
    const read = await readObjects(needs)
    if (closing.signal.aborted) return
    leases.replace(read.objects.get('leases') ?? [])
    cache.replace(read.revision, withoutLeases(read.objects))
    log.info('Objects of etcd read again', { reason, revision: read.revision })
    advance(read.revision)
  }

  const hasReplacedAll = (reason: string, failed: number) =>
    replaceAll(reason).then(
      () => true,
      (error: unknown) => {
        if (failed === 0) log.warn('Cannot read etcd', { error })
        return closing.signal.aborted
      },
    )

  const position: WatchPosition = {
    revision: () => revision,
    until: waiting.until,
    readAgain(reason) {
      if (stream !== undefined) void end(reason, true)
    },
  }

  watch()
  return {
    get: (resource, key) => cache.get(resource, key),
    revisionOf: (resource, key) =>
      resource === 'leases' ? leases.revisionOf(key) : Number(cache.get(resource, key)?.metadata.resourceVersion ?? 0),
    revision: position.revision,
    until: position.until,
    latest: inBatches((ms) => reachLatest(needs, position, ms)),
    close() {
      closing.abort('closed')
      waiting.close()
      stream?.close()
    },
  }
}

type WatchPosition = Pick<EtcdImage, 'revision' | 'until'> & {
  /** Reads all objects, and watches from there on. A watch that has ended already begins again by itself. */
  readonly readAgain: (reason: string) => void
}

/**
 * Changes of other prefixes raise the revision, too, and the watch has no event of them. Then a key of this store is written, whose event
 * comes after all others. A requested progress notification is not proof: etcd before 3.4.25 and 3.5.8 sends it ahead of events that
 * are on their way, or not yet read (etcd-io/etcd 15220), and who counted from there would leave them out. Where etcd has no space for the
 * mark, all objects are read: others may have filled it, and a client that would delete something must not be refused for that.
 */
async function reachLatest(
  { client, keys, clock }: Pick<ImageNeeds, 'client' | 'keys' | 'clock'>,
  { revision, until, readAgain }: WatchPosition,
  ms: number,
): Promise<boolean> {
  const untilMs = clock.monotonicMs() + ms
  const { header } = await client.call(methods.range, { key: keys.owner, limit: 1, keysOnly: true })
  const wanted = header?.revision ?? 0
  const isReached = () => revision() >= wanted
  if (await until(isReached, arrivalMs)) return true
  const put = { key: keys.mark, value: Buffer.alloc(0) }
  await client.call(methods.txn, { compare: [], success: [{ put }] }).catch((error: unknown) => {
    if (!isWithoutSpace(error)) throw error
    readAgain('etcd has no space left')
  })
  return until(isReached, Math.max(0, untilMs - clock.monotonicMs()))
}

function applyChange(needs: ImageNeeds, type: number, kv: KeyValue): void {
  const { keys, resources, cache } = needs
  const key = keys.parse(kv.key)
  const name = key && storedName(key.resource, resources)
  if (key === undefined || name === undefined || isVolatileLease(name, key)) return
  const isDeletion = type === eventType.delete
  if (name === 'leases') {
    applyLease(needs, key, kv, isDeletion)
    return
  }
  const previous = cache.get(name, key)
  const version = kv.modRevision
  if (isDeletion) {
    if (previous !== undefined) cache.apply(name, withVersion({ type: 'DELETED', object: previous, previous }, version))
    return
  }
  if (previous?.metadata.resourceVersion === String(version)) return
  const object = decoded(needs, key, kv)
  if (object !== undefined) cache.apply(name, { type: previous ? 'MODIFIED' : 'ADDED', object, previous, version })
}

function withoutLeases(objects: StoredObjects['objects']): StoredObjects['objects'] {
  return new Map([...objects].filter(([resource]) => resource !== 'leases'))
}

/** undefined: others wrote something else there. Readers keep what was there before. */
function decoded(
  { values, log }: Pick<ImageNeeds, 'values' | 'log'>,
  key: StoredKey,
  { value, modRevision }: KeyValue,
): AnyStoredObject | undefined {
  try {
    return values.decode(key, value, modRevision)
  } catch (error) {
    log.error('Value in etcd cannot be read: it was not written by a controller', {
      ...key,
      revision: modRevision,
      error,
    })
    return undefined
  }
}

/** Waits for conditions that changes make true. One for each write that is under way: none of them listens to a shared signal. */
function waiters(clock: Clock) {
  const waiting = new Set<{ readonly isTrue: () => boolean; readonly done: () => void }>()
  let closed = false
  return {
    look() {
      for (const { isTrue, done } of [...waiting]) if (isTrue()) done()
    },
    async until(isTrue: () => boolean, ms: number): Promise<boolean> {
      if (isTrue() || closed) return isTrue()
      return new Promise((resolve) => {
        const done = () => {
          stop()
          waiting.delete(waiter)
          resolve(isTrue())
        }
        const waiter = { isTrue, done }
        const stop = startDeadline(ms, done, clock)
        waiting.add(waiter)
      })
    },
    close() {
      closed = true
      for (const { done } of [...waiting]) done()
    },
  }
}

/** Calls that come while one is under way share the next one: what they wait for was written before it begins. */
function inBatches<T>(act: (ms: number) => Promise<T>): (ms: number) => Promise<T> {
  let running: Promise<T> | undefined
  let next: Promise<T> | undefined
  const begin = (ms: number): Promise<T> => {
    next = undefined
    const mine = act(ms).finally(() => {
      if (running === mine) running = undefined
    })
    running = mine
    return mine
  }
  return (ms) => {
    if (next !== undefined) return next
    if (running === undefined) return begin(ms)
    const after = () => begin(ms)
    next = running.then(after, after)
    return next
  }
}

function applyLease(needs: ImageNeeds, key: StoredKey, kv: KeyValue, isDeletion: boolean): void {
  const object = isDeletion ? undefined : decoded(needs, key, kv)
  if (object !== undefined || isDeletion) needs.leases.apply(key, object, kv.modRevision)
}
