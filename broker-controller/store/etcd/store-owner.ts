/**
 * Which process may write: the one that made the key `.store/owner`. The key ends with its etcd lease, which that process keeps
 * alive, and every write has the condition that the key is still its own. So of two controllers on one prefix one writes, also
 * when it was stopped for longer than its lease lasts.
 */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { leaseDurationMs } from '../election/election.ts'
import { StoreInUseError } from '../store.ts'
import type { EtcdClient } from './etcd-client.ts'
import type { EtcdKeys } from './etcd-keys.ts'
import { type Compare, compareTarget } from './etcd-messages.ts'
import type { Fence } from './fence.ts'
import { startLeaseKeeper } from './lease-keeper.ts'
import {
  deleteOwnerKey,
  type HeldKey,
  keptAlive,
  type OwnerClaims,
  type OwnerProcess,
  ownerClaims,
  presentOwner,
} from './owner-key.ts'

export type StoreOwnerNeeds = {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly self: OwnerProcess
  /** Whether a process of the same `place` has ended. */
  readonly hasEnded: (other: OwnerProcess) => boolean
  readonly clock: Clock
  readonly log: Log
  /** Ends the wait for a previous owner. */
  readonly signal?: AbortSignal | undefined
}

export interface StoreOwner extends Fence {
  /** Resolves when `signal` aborts. Rejects with StoreInUseError when another process owns the store. */
  run(signal: AbortSignal): Promise<void>
  /** The next owner need not wait for the end of the lease. */
  release(): Promise<void>
}

/** How long a process that does not answer stays the owner. */
const leaseSeconds = 10
const renewMs = 3_000
const pollMs = 500
/** Longer than any lease on the key lasts: an owner that is still there then is alive. */
const patienceMs = leaseDurationMs + 5_000

/**
 * Waits for an owner that no longer renews its lease; keeps the lease of this one from then on. Rejects with StoreInUseError where
 * there is an owner that renews it, with EtcdError, and when `signal` aborts.
 */
export async function acquireStore(needs: StoreOwnerNeeds): Promise<StoreOwner> {
  const { client, keys, clock, log } = needs
  const closing = new AbortController()
  const claims = ownerClaims(client, keys, leaseSeconds, clock)
  let held = await acquired(needs, claims, needs.signal ?? closing.signal)
  if (held === undefined) throw new Error(`The wait for ${keys.prefix} in etcd was ended`)

  const renew = async (isDoubtful: boolean) => {
    const isKept = held !== undefined && !isDoubtful && (await keptAlive(client, held.lease, clock))
    if (isKept || (await isOwn(client, keys, held)) || closing.signal.aborted) return
    held = undefined
    log.warn('The lease on the store in etcd has ended: acquiring it again', { prefix: keys.prefix })
    held = await acquired(needs, claims, closing.signal)
  }
  const keeper = startLeaseKeeper(
    { renew, periodMs: renewMs, retryMs: renewMs, what: 'the lease on the store', clock, log },
    closing.signal,
  )
  return {
    condition: () => held && { target: compareTarget.create, key: keys.owner, createRevision: held.createRevision },
    failed: () => keeper.checkNow(),
    run: (signal) => keeper.run(signal),
    async release() {
      held = undefined
      closing.abort('released')
      await claims.release().catch((error: unknown) => {
        log.debug('Lease on the store in etcd not released', { seconds: leaseSeconds, error })
      })
    },
  }
}

/** The condition of every write that belongs together: it fails also where the store was lost in between, and acquired again. */
export function ownedBy(owner: Fence, prefix: string): Compare {
  const condition = owner.condition()
  if (condition === undefined) throw storeLost(prefix)
  return condition
}

export function storeLost(prefix: string): Error {
  return new Error(`The lease on ${prefix} in etcd has ended: check that no other controller uses it, and try again`)
}

async function acquired(
  needs: StoreOwnerNeeds,
  claims: OwnerClaims,
  signal: AbortSignal,
): Promise<HeldKey | undefined> {
  const { client, keys, self, hasEnded, clock, log } = needs
  let waitingFor: { readonly createRevision: number; readonly untilMs: number } | undefined
  while (!signal.aborted) {
    const present = await presentOwner(client, keys)
    if (present === undefined) {
      const held = await claims.claim(self)
      if (held !== undefined) return held
      continue
    }
    const made = await claims.madeBefore(present)
    if (made !== undefined) return made
    const { createRevision, process: other } = present
    if (other !== undefined && hasEnded(other)) {
      await deleteOwnerKey(client, keys, createRevision)
      continue
    }
    const who = nameOf(other)
    if (waitingFor?.createRevision !== createRevision) {
      waitingFor = { createRevision, untilMs: clock.monotonicMs() + patienceMs }
      log.info('Waiting for the previous owner of the store in etcd', { prefix: keys.prefix, owner: who })
    }
    if (clock.monotonicMs() > waitingFor.untilMs) {
      const remedy = 'stop it first, or choose another prefix with --etcd-prefix'
      throw new StoreInUseError(`Another controller (${who}) uses ${keys.prefix} in etcd: ${remedy}`)
    }
    await clock.sleep(pollMs, signal)
  }
  return undefined
}

async function isOwn(client: EtcdClient, keys: EtcdKeys, held: HeldKey | undefined): Promise<boolean> {
  const present = await presentOwner(client, keys)
  return held !== undefined && present?.createRevision === held.createRevision
}

function nameOf(owner: OwnerProcess | undefined): string {
  return owner === undefined ? 'an unknown process' : `${owner.host}, pid ${owner.pid}`
}
