/**
 * Writes changes to etcd: one object in one transaction, so that each change has a revision of its own, on the condition that the
 * object is still the one that was decided on, and that this process still owns the store.
 */
import { ApiError, conflict } from '../../../api/api-error.ts'
import type { ResourceName, ResourceRegistry } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { turnsByKey } from '../../../daemon/limits/turns-by-key.ts'
import type { ChangeWriter, Decide } from '../cached-store.ts'
import { type AnyStoredObject, type DraftChange, withVersion } from '../changes.ts'
import type { ObjectCache } from '../object-cache.ts'
import type { ObjectKey } from '../store.ts'
import { isVolatileLease } from '../volatile.ts'
import type { EtcdClient } from './etcd-client.ts'
import { answerOf, isAbsent } from './etcd-error.ts'
import type { EtcdImage } from './etcd-image.ts'
import type { EtcdKeys, StoredKey } from './etcd-keys.ts'
import { compareTarget, methods, type TxnOperation, type TxnResponse } from './etcd-messages.ts'
import type { EtcdValues } from './etcd-values.ts'
import { etcdVersions } from './etcd-versions.ts'
import type { Fence } from './fence.ts'
import type { LeaseVersions } from './lease-versions.ts'

export type EtcdWriterNeeds = {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly values: EtcdValues
  readonly resources: ResourceRegistry
  readonly cache: ObjectCache
  readonly image: Pick<EtcdImage, 'get' | 'revision' | 'revisionOf' | 'until'>
  readonly leaseVersions: LeaseVersions
  readonly fence: Fence
  readonly clock: Clock
  readonly close: () => Promise<void>
}

/** After this many changes by others in a row the client is answered Conflict, and reads again itself. */
const mostDecisions = 5
/** From the first attempt to the last: to find another endpoint, and to wait for a leader. */
const writeMs = 3_000
/** Readers see a change as soon as its transaction is answered, unless the watch is being resumed. */
export const visibleMs = 1_500
const pauseMs = 50

type Answer = { readonly object: AnyStoredObject | undefined }

export function etcdWriter(needs: EtcdWriterNeeds): ChangeWriter {
  const { client, keys, values, resources, cache, image, leaseVersions, fence, clock } = needs
  const inTurn = turnsByKey() // Writes of one object would only make each other decide again.
  const storedVersion = etcdVersions(client)

  /** Whether this revision, which is what readers see, is the latest in etcd, too. */
  const isLatest = async (key: StoredKey, revision: number): Promise<boolean> =>
    (await storedVersion(keys.of(key))) === revision
  const put = (key: StoredKey, draft: DraftChange, modRevision: number): Promise<TxnResponse> => {
    const condition = fence.condition()
    if (condition === undefined) throw notOwned()
    const operation: TxnOperation =
      draft.type === 'DELETED'
        ? { deleteRange: { key: keys.of(key) } }
        : { put: { key: keys.of(key), value: values.encode(key, draft.object) } }
    return client.call(methods.txn, {
      compare: [{ target: compareTarget.mod, key: keys.of(key), modRevision }, condition],
      success: [operation],
      failure: [{ range: { key: keys.of(key), limit: 1, keysOnly: true } }],
    })
  }
  /** undefined: etcd has another revision than `before`. */
  const tryPut = async (
    resource: ResourceName,
    key: ObjectKey,
    { draft, before, untilMs }: { readonly draft: DraftChange; readonly before: number; readonly untilMs: number },
  ): Promise<Answer | undefined> => {
    const stored = { resource, ...key }
    const { succeeded, header, responses } = await patiently(clock, untilMs, () => put(stored, draft, before))
    if (succeeded) return { object: await written(image, { resource, key, draft, revision: header?.revision ?? 0 }) }
    if ((responses[0]?.range?.kvs[0]?.modRevision ?? 0) !== before) return undefined
    fence.failed()
    throw notOwned()
  }
  /** undefined: it was decided on a revision that is no longer the latest, and readers see the later one. */
  const attempt = async (
    resource: ResourceName,
    key: ObjectKey,
    decide: Decide,
    untilMs: number,
  ): Promise<Answer | undefined> => {
    const stored = { resource, ...key }
    const present = image.get(resource, key)
    const before = image.revisionOf(resource, key)
    const { draft, error } = decided(decide, present)
    if (draft === undefined) {
      // What readers see may be behind: no answer is given from it alone.
      if (await patiently(clock, untilMs, () => isLatest(stored, before))) {
        if (error !== undefined) throw error
        return { object: present }
      }
    } else {
      const answer = await tryPut(resource, key, { draft, before, untilMs })
      if (answer !== undefined) return answer
    }
    await seeChange(image, resource, key, before)
    return undefined
  }
  const write = async (
    resource: ResourceName,
    key: ObjectKey,
    decide: Decide,
  ): Promise<AnyStoredObject | undefined> => {
    const untilMs = clock.monotonicMs() + writeMs
    for (let decisions = 1; ; decisions++) {
      const answer = await attempt(resource, key, decide, untilMs)
      if (answer !== undefined) return answer.object
      const row = resources.get(resource)
      if (decisions === mostDecisions && row !== undefined) throw conflict(row, key.name)
    }
  }
  const writeVolatile = async (resource: ResourceName, key: ObjectKey, decide: Decide) => {
    const present = cache.get(resource, key)
    const draft = decide(present)
    if (draft === undefined) return present
    const change = withVersion(draft, leaseVersions.next())
    cache.apply(resource, change)
    return change.object
  }

  return {
    async write(resource, key, decide) {
      if (isVolatileLease(resource, key)) return writeVolatile(resource, key, decide)
      const { namespace, name } = key
      return inTurn(`${resource}/${namespace}/${name}`, () =>
        write(resource, { namespace, name }, decide).catch((error: unknown) => {
          throw answerOf(error)
        }),
      )
    },
    visibleVersion: (resource) => (resource === 'leases' ? leaseVersions.last() : image.revision()),
    close: needs.close,
  }
}

type Decision = { readonly draft: DraftChange | undefined; readonly error?: unknown }

function decided(decide: Decide, present: AnyStoredObject | undefined): Decision {
  try {
    return { draft: decide(present) }
  } catch (error) {
    return { draft: undefined, error }
  }
}

function notOwned(): ApiError {
  return new ApiError('ServiceUnavailable', 'This controller does not own the store in etcd', { retryAfterSeconds: 1 })
}

/** Repeats a call that was refused because no member can be reached or leads. */
async function patiently<T>(
  clock: Pick<Clock, 'monotonicMs' | 'sleep'>,
  untilMs: number,
  call: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!isAbsent(error) || clock.monotonicMs() + pauseMs > untilMs) throw error
      await clock.sleep(pauseMs)
    }
  }
}

type Image = EtcdWriterNeeds['image']

/** Settles when readers see another revision than `before`, which etcd no longer has. */
async function seeChange(image: Image, resource: ResourceName, key: ObjectKey, before: number): Promise<void> {
  const isOther = () => image.revisionOf(resource, key) !== before
  if (await image.until(isOther, visibleMs)) return
  throw new ApiError('ServiceUnavailable', 'The changes in etcd do not arrive here', { retryAfterSeconds: 1 })
}

type WrittenChange = {
  readonly resource: ResourceName
  readonly key: ObjectKey
  readonly draft: DraftChange
  readonly revision: number
}

async function written(image: Image, { resource, key, draft, revision }: WrittenChange): Promise<AnyStoredObject> {
  if (!(await image.until(() => image.revision() >= revision, visibleMs))) {
    throw new ApiError('Timeout', 'The change is written, and does not arrive here: the watch of etcd is interrupted')
  }
  const seen = image.get(resource, key)
  const isSeen = seen !== undefined && image.revisionOf(resource, key) === revision
  return isSeen ? seen : withVersion(draft, revision).object
}
