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

export function etcdWriter(needs: EtcdWriterNeeds): ChangeWriter {
  const { client, keys, values, resources, cache, image, leaseVersions, fence, clock } = needs
  const inTurn = turnsByKey() // Writes of one object would only make each other decide again.
  const storedVersion = etcdVersions(client)

  /** Repeats a call that was refused because no member can be reached or leads. */
  const patiently = async <T>(untilMs: number, call: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if (!isAbsent(error) || clock.monotonicMs() + pauseMs > untilMs) throw error
        await clock.sleep(pauseMs)
      }
    }
  }
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
  /** Settles when readers see another revision than `before`, which etcd no longer has. */
  const seeChange = async (resource: ResourceName, key: ObjectKey, before: number) => {
    const isOther = () => image.revisionOf(resource, key) !== before
    if (await image.until(isOther, visibleMs)) return
    throw new ApiError('ServiceUnavailable', 'The changes in etcd do not arrive here', { retryAfterSeconds: 1 })
  }
  const written = async (resource: ResourceName, key: ObjectKey, draft: DraftChange, revision: number) => {
    if (!(await image.until(() => image.revision() >= revision, visibleMs))) {
      throw new ApiError('Timeout', 'The change is written, and does not arrive here: the watch of etcd is interrupted')
    }
    const seen = image.get(resource, key)
    const isSeen = seen !== undefined && image.revisionOf(resource, key) === revision
    return isSeen ? seen : withVersion(draft, revision).object
  }
  const write = async (
    resource: ResourceName,
    key: ObjectKey,
    decide: Decide,
  ): Promise<AnyStoredObject | undefined> => {
    const stored = { resource, ...key }
    const untilMs = clock.monotonicMs() + writeMs
    for (let decisions = 1; ; decisions++) {
      const present = image.get(resource, key)
      const before = image.revisionOf(resource, key)
      const decision = decided(decide, present)
      if (decision.draft === undefined) {
        // What readers see may be behind: no answer is given from it alone.
        if (await patiently(untilMs, () => isLatest(stored, before))) {
          if (decision.error !== undefined) throw decision.error
          return present
        }
      } else {
        const { draft } = decision
        const { succeeded, header, responses } = await patiently(untilMs, () => put(stored, draft, before))
        if (succeeded) return written(resource, key, draft, header?.revision ?? 0)
        if ((responses[0]?.range?.kvs[0]?.modRevision ?? 0) === before) {
          fence.failed()
          throw notOwned()
        }
      }
      await seeChange(resource, key, before)
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
