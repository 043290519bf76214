/**
 * Loop: follows the orders of the controller for volumes, and reports which are done. An order that is refused is tried again: the pod that has
 * the volume mounted may be gone then.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Pool } from '../../../api/storage/pools.ts'
import type {
  MoveReport,
  NodeVolumeOrder,
  PoolUsage,
  StorageMessage,
  TrashedVolume,
  VolumesMessage,
} from '../../../api/storage/volume-messages.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell } from '../../../daemon/cell.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { ControlPlane, ControlPlaneListener } from '../../node/connection/control-plane.ts'
import type { NodeEvent } from '../../node/status/node-event.ts'
import { poolEvents } from './pool-presence.ts'
import { reportedUsage, type StorageUsage } from './reported-usage.ts'
import { distrust, type StoreTrust, trustAfter, trustWaitMs } from './store-trust.ts'
import type { VolumeMoves } from './volume-moves.ts'
import { VolumeError } from './volume-store.ts'
import type { CountedVolume, KnownStores, PoolState, VolumeTrash } from './volume-trash.ts'

export type VolumeOrdersNeeds = {
  readonly trash: VolumeTrash
  readonly moves: VolumeMoves
  /** A pod has given up its volumes: orders that wait for it are followed again. */
  readonly onRelease: (listener: () => void) => void
  readonly stores: KnownStores
  readonly controlPlane: Pick<ControlPlane, 'reportStorage'>
  readonly event: (event: NodeEvent) => void
  /** The pools that are there; undefined: they were not opened yet. */
  readonly writes: { readonly pools: Cell<readonly Pool[] | undefined> }
  readonly clock: Clock
  readonly log: Log
}

type Measured = {
  readonly pools: readonly PoolUsage[]
  readonly volumes: readonly CountedVolume[]
  readonly trash: readonly TrashedVolume[]
}

export interface VolumeOrders extends Loop {
  /** The pools and their volumes, as they were measured last. */
  measured(): Measured
  readonly listener: Required<Pick<ControlPlaneListener, 'store' | 'volumes' | 'volumesOff' | 'disconnected'>>
}

/** Sizes are read so often, and orders that were refused tried again. */
const roundMs = 60_000
const retryMs = 15_000
const ageMs = 3600_000

/** Follows the orders of one message after another, and remembers what became of each. */
function orderFollower({ trash, moves, stores, clock, log }: VolumeOrdersNeeds) {
  const finished = new Set<string>()
  const refusals = new Map<string, string>()
  let trust: StoreTrust | undefined
  let moving: readonly MoveReport[] = []

  const renewTrust = async (store: string | undefined): Promise<StoreTrust> => {
    const before = trust ?? { known: await stores.load() }
    const after = trustAfter(before, { store, nowMs: clock.monotonicMs(), isEmpty: await trash.isEmpty() })
    // Saved first: after a restart it is not a stranger again, and the store before it is not obeyed.
    if (after.known !== before.known) await stores.save(after.known)
    return after
  }

  /** Why it is refused; undefined: it is done. */
  const discard = async (order: NodeVolumeOrder): Promise<string | undefined> => {
    try {
      await trash.discard(order)
      const { volume, claim, pool, share } = order
      log.info('The data of a volume is deleted', { volume, claim, ...(share ? { server: share.server } : { pool }) })
      return undefined
    } catch (error) {
      if (!(error instanceof VolumeError)) throw error
      return messageOf(error)
    }
  }

  const remember = ({ uid, volume }: NodeVolumeOrder, refusal: string | undefined) => {
    if (refusal === undefined) {
      finished.add(uid)
      refusals.delete(uid)
      return
    }
    if (refusals.get(uid) !== refusal) log.warn('An order for a volume is refused', { volume, reason: refusal })
    refusals.set(uid, refusal)
  }

  const forgetAllBut = (orders: readonly NodeVolumeOrder[]) => {
    const wanted = new Set(orders.map(({ uid }) => uid))
    for (const uid of finished) if (!wanted.has(uid)) finished.delete(uid)
    for (const uid of refusals.keys()) if (!wanted.has(uid)) refusals.delete(uid)
  }

  const isWaiting = () => refusals.size > 0 || moving.some(({ waits }) => waits !== undefined)

  return {
    /** Whether an order was carried out. `isCurrent`: no other message has come meanwhile, and no other controller. */
    async follow(
      store: string | undefined,
      message: VolumesMessage | undefined,
      isCurrent: () => boolean,
    ): Promise<boolean> {
      trust = await renewTrust(store)
      forgetAllBut(message?.orders ?? [])
      const mistrusted = message && distrust(trust, message.store)
      const orders = message?.orders ?? []
      moving = await moves.follow(mistrusted === undefined ? orders.filter(isOfMove) : [])
      let isDone = false
      for (const order of orders.filter((one) => !isOfMove(one))) {
        if (!isCurrent()) break
        if (finished.has(order.uid)) continue
        const refusal = mistrusted ?? (await discard(order))
        remember(order, refusal)
        isDone ||= refusal === undefined
      }
      return isDone
    },
    outcome: (orders: readonly NodeVolumeOrder[]): Pick<StorageMessage, 'done' | 'refused' | 'moves'> => ({
      moves: moving,
      done: orders.flatMap(({ uid }) => (finished.has(uid) ? [uid] : [])),
      refused: orders.flatMap(({ uid }) => {
        const reason = refusals.get(uid)
        return reason === undefined ? [] : [{ uid, reason }]
      }),
    }),
    isWaiting,
    /** When to follow the same orders again. */
    waitMs() {
      const waitMs = isWaiting() ? retryMs : roundMs
      return Math.min(waitMs, (trust && trustWaitMs(trust, clock.monotonicMs())) ?? waitMs)
    },
  }
}

/** The one that puts the old copy of a moved volume in the trash is like others for the trash. */
function isOfMove({ move }: NodeVolumeOrder): boolean {
  return move !== undefined
}

export function volumeOrders(needs: VolumeOrdersNeeds): VolumeOrders {
  const { trash, moves, controlPlane, event, writes, clock, log } = needs
  const bell = alarm(clock)
  moves.onChange(() => bell.ring())
  const follower = orderFollower(needs)
  needs.onRelease(() => {
    if (follower.isWaiting()) bell.ring()
  })
  let store: string | undefined
  let message: VolumesMessage | undefined
  let usage: StorageUsage & Pick<StorageMessage, 'shares'> = {}
  let measured: Measured = { pools: [], volumes: [], trash: [] }
  let presence: readonly PoolState[] = []
  let reported: StorageMessage = { done: [], refused: [], moves: [] }

  const report = () => {
    const next: StorageMessage = { ...follower.outcome(message?.orders ?? []), ...usage }
    if (isDeepStrictEqual(next, reported)) return
    reported = next
    controlPlane.reportStorage(next)
  }
  /** The disk of a pool may be removed at any time, and come back. */
  const lookForPools = () => {
    const now = trash.poolStates()
    const changes = poolEvents(presence, now)
    writes.pools.set(now.flatMap((state) => ('id' in state ? [state] : [])))
    presence = now
    for (const change of changes) event(change)
  }
  const measure = async () => {
    const [pools, counted] = [await trash.poolUsage(), await trash.volumeUsage()]
    lookForPools()
    const thrown = await trash.trashed()
    measured = { pools, volumes: counted, trash: thrown }
    const volumes = counted.map(({ uid, usedBytes }) => ({ uid, usedBytes }))
    const shares = await trash.shareKinds()
    usage = {
      ...reportedUsage(usage, { pools, volumes, trash: thrown }),
      ...((shares.length > 0 || usage.shares !== undefined) && { shares }),
    }
  }

  const run = async (signal: AbortSignal): Promise<void> => {
    let agedMs = clock.monotonicMs()
    let measuredMs = Number.NEGATIVE_INFINITY
    const round = async () => {
      const current = message
      // What an order has moved to the trash is reported with it: a person may want it back.
      const isDone = await follower.follow(store, current, () => message === current)
      const nowMs = clock.monotonicMs()
      if (isDone || nowMs - measuredMs >= roundMs) {
        measuredMs = nowMs
        await measure()
        const elapsedMs = nowMs - agedMs >= ageMs ? nowMs - agedMs : 0
        await trash.age(elapsedMs, signal)
        if (elapsedMs > 0) agedMs = nowMs
      }
      report()
    }
    while (!signal.aborted) {
      try {
        await round()
      } catch (error) {
        if (!signal.aborted) log.warn('Orders for volumes are not followed now', { error })
      }
      await bell.sleep(follower.waitMs(), signal)
    }
  }

  return {
    name: 'volume-orders',
    measured: () => measured,
    listener: {
      store(id) {
        if (store === id) return
        store = id
        bell.ring()
      },
      volumes(received) {
        if (received.epoch === message?.epoch && received.version < message.version) return
        message = received
        bell.ring()
      },
      volumesOff() {
        message = undefined
      },
      disconnected() {
        message = undefined
        store = undefined
        bell.ring()
      },
    },
    run,
  }
}
