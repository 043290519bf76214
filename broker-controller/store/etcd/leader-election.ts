/**
 * Which of several controllers leads: the one that made the key `.store/owner`, whose etcd lease it renews. The revision of the key is
 * the condition of every write, so that one that was frozen, or cut off, for longer than its lease writes nothing.
 */
import { setMaxListeners } from 'node:events'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import {
  type Leader,
  LeadershipLostError,
  leaseDurationMs,
  renewDeadlineMs,
  retryPeriodMs,
  type Term,
} from '../election/election.ts'
import type { EtcdClient } from './etcd-client.ts'
import { EtcdError } from './etcd-error.ts'
import type { EtcdKeys } from './etcd-keys.ts'
import { compareTarget } from './etcd-messages.ts'
import type { Fence } from './fence.ts'
import { type LeaseKeeper, startLeaseKeeper } from './lease-keeper.ts'
import { deleteOwnerKey, type HeldKey, keptAlive, type OwnerProcess, ownerClaims, presentOwner } from './owner-key.ts'

export type LeaderElectionNeeds = {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly self: OwnerProcess
  /** Whether a process of the same `place` has ended. */
  readonly hasEnded: (other: OwnerProcess) => boolean
  readonly clock: Clock
  readonly log: Log
}

/** `revision`: every write of the leaders before has a lower one. */
export type ElectedTerm = Term & { readonly revision: number }

export interface LeaderElection extends Fence {
  /** Resolves when this process leads; undefined: `signal` has aborted before. `server`: of its API. */
  campaign(server: string, signal: AbortSignal): Promise<ElectedTerm | undefined>
  /** Resolves when `signal` aborts. Rejects with LeadershipLostError. */
  keep(signal: AbortSignal): Promise<void>
  isLeading(): boolean
  leader(): Leader | undefined
  resign(): Promise<void>
}

/**
 * A standby looks more often than client-go's two seconds: a planned hand-over takes no longer than this and the start of the loops.
 */
const pollMs = 500

/** Does nothing before the first `campaign`. */
export function leaderElection(needs: LeaderElectionNeeds): LeaderElection {
  const { client, keys, clock, log } = needs
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // each wait listens: many are not a leak
  const claims = ownerClaims(client, keys, leaseDurationMs / 1000, clock)
  let held: HeldKey | undefined
  let renewedMs = Number.NEGATIVE_INFINITY
  let leader: Leader | undefined
  let keeper: LeaseKeeper | undefined

  /** The time of a renewal is that before it was sent: etcd counts from a later one. */
  const attempt = async (server: string): Promise<HeldKey | undefined> => {
    const present = await presentOwner(client, keys)
    leader = present?.process
    const triedMs = clock.monotonicMs()
    const made = present && (await claims.madeBefore(present))
    if (made === undefined && present !== undefined) {
      if (present.process === undefined || !needs.hasEnded(present.process)) return undefined
      await deleteOwnerKey(client, keys, present.createRevision)
    }
    const own = made ?? (await claims.claim({ ...needs.self, server }))
    if (own !== undefined) renewedMs = triedMs
    return own
  }
  const renew = async (isDoubtful: boolean) => {
    if (held === undefined) return
    const triedMs = clock.monotonicMs()
    const isKept = !isDoubtful && (await keptAlive(client, held.lease, clock))
    const isOwn = isKept || (await presentOwner(client, keys))?.createRevision === held.createRevision
    if (closing.signal.aborted) return
    if (!isOwn)
      throw new LeadershipLostError(`The lease on ${keys.prefix} in etcd has ended: another controller may lead`)
    if (isKept) renewedMs = triedMs
  }

  /** False: etcd does not answer. */
  const tryAttempt = async (server: Parameters<typeof attempt>[0], isAway: boolean): Promise<boolean> => {
    try {
      held = await attempt(server)
      if (isAway) log.info('etcd answers again')
      return true
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (!isAway) log.warn('Cannot take part in the election of a leader', { error })
      return false
    }
  }

  return {
    async campaign(server, signal) {
      let isAway = false
      while (!signal.aborted && !closing.signal.aborted) {
        isAway = !(await tryAttempt(server, isAway))
        if (held !== undefined) {
          const { createRevision, transitions } = held
          leader = { ...needs.self, server }
          keeper = startLeaseKeeper(
            { renew, periodMs: retryPeriodMs, retryMs: pollMs, what: 'the lease of the leader', clock, log },
            closing.signal,
          )
          return { revision: createRevision, transitions, sinceMs: clock.wallMs() }
        }
        await clock.sleep(pollMs, signal)
      }
      return undefined
    },
    keep: async (signal) => keeper?.run(signal),
    isLeading: () => held !== undefined && clock.monotonicMs() - renewedMs < renewDeadlineMs,
    leader: () => leader,
    condition: () => held && { target: compareTarget.create, key: keys.owner, createRevision: held.createRevision },
    failed: () => keeper?.checkNow(),
    async resign() {
      held = undefined
      closing.abort('resigned')
      await claims.release().catch((error: unknown) => {
        log.debug('Lease of the leader not released', { afterMs: leaseDurationMs, error })
      })
    },
  }
}
