/**
 * Versions of leases. Those of nodes are never written, so the versions are reserved in etcd in blocks, so that they never run backwards, also after
 * SIGKILL: a start begins where the last reserved block ended.
 */
import { ApiError } from '../../../api/api-error.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { EtcdClient } from './etcd-client.ts'
import type { EtcdKeys } from './etcd-keys.ts'
import { compareTarget, methods } from './etcd-messages.ts'
import type { Fence } from './fence.ts'

/** A thousand renewals a second last for 80 minutes without etcd when the next block is reserved at the half of this one. */
const blockLength = 10_000_000
const retryMs = 1_000

export interface LeaseVersions {
  /** Whether this controller may assign versions. */
  isOpen(): boolean
  last(): number
  /** Throws ApiError ServiceUnavailable where etcd was away for longer than the block lasts. */
  next(): number
}

export type LeaseVersionsNeeds = {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly fence: Fence
  readonly clock: Clock
  readonly log: Log
}

/** Resolves when the first block is reserved. Rejects with EtcdError, or with ApiError Conflict where it was changed meanwhile. */
export async function openLeaseVersions({
  client,
  keys,
  fence,
  clock,
  log,
}: LeaseVersionsNeeds): Promise<LeaseVersions> {
  const key = keys.leaseVersions
  const reserve = async () => {
    const { kvs } = await client.call(methods.range, { key, limit: 1 })
    const [present] = kvs
    const begin = Number(present?.value.toString() ?? 0)
    const condition = fence.condition()
    const { succeeded } = await client.call(methods.txn, {
      compare: [
        { target: compareTarget.mod, key, modRevision: present?.modRevision ?? 0 },
        ...(condition === undefined ? [] : [condition]),
      ],
      success: [{ put: { key, value: Buffer.from(String(begin + blockLength)) } }],
    })
    if (!succeeded) {
      // Changed since it was read: by a write before this one that was not answered, or by another process that leads now.
      fence.failed()
      throw new ApiError('Conflict', `${key} in etcd was changed since it was read`)
    }
    return begin
  }
  let last = await reserve()
  let reserved = last + blockLength
  let isReserving = false
  const extend = () => {
    isReserving = true
    reserve().then(
      (begin) => {
        reserved = begin + blockLength
        isReserving = false
      },
      (error: unknown) => {
        log.warn('Cannot reserve versions of leases in etcd', { left: reserved - last, error })
        void clock.sleep(retryMs).then(() => {
          isReserving = false
        })
      },
    )
  }
  return {
    isOpen: () => true,
    last: () => last,
    next() {
      if (reserved - last < blockLength / 2 && !isReserving) extend()
      if (last >= reserved) {
        throw new ApiError('ServiceUnavailable', 'etcd cannot be reached: no versions of leases are left', {
          retryAfterSeconds: 1,
        })
      }
      last += 1
      return last
    },
  }
}

/** Versions for a controller that does not lead yet: no lease is written before `open`. */
export function lateLeaseVersions(): LeaseVersions & { open(needs: LeaseVersionsNeeds): Promise<void> } {
  let opened: LeaseVersions | undefined
  return {
    isOpen: () => opened !== undefined,
    last: () => opened?.last() ?? 0,
    next() {
      if (opened !== undefined) return opened.next()
      throw new ApiError('ServiceUnavailable', 'This controller does not lead', { retryAfterSeconds: 1 })
    },
    async open(needs) {
      opened = await openLeaseVersions(needs)
    },
  }
}
