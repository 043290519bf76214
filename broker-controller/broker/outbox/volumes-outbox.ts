/**
 * Loop: volumes of pools whose data is to be deleted, or moved → one retained message for each node that has such a pool, with all its orders. A node that
 * never had an order has no message.
 */
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import { labelledPools } from '../../../api/storage/pools.ts'
import { mostOrders, type NodeVolumeOrder, type VolumesMessage } from '../../../api/storage/volume-messages.ts'
import { moveOrders } from '../../../api/storage/volume-move.ts'
import { deletionOrder } from '../../../api/storage/volume-orders.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { RestoreHold } from '../../store/checkpoints/restore-hold.ts'
import { type InformerNeeds, informer } from '../../store/informer.ts'
import type { StoreOrigin } from '../../store/store.ts'
import type { Broker } from '../broker.ts'

export type VolumesOutboxNeeds = InformerNeeds & {
  readonly broker: Pick<Broker, 'publish' | 'withdraw'>
  /** New at each start of the controller. */
  readonly epoch: string
  readonly origin: Pick<StoreOrigin, 'id'>
  /** Nothing is published while claims may come back after a restore. */
  readonly hold?: Pick<RestoreHold, 'holds' | 'onRelease'>
}

/** A namespace that is deleted has many claims: one message for all. */
const debounceMs = 200

/** A volume that is being moved is not deleted meanwhile. */
function ordersAbout(volume: PersistentVolume | undefined): readonly NodeVolumeOrder[] {
  if (volume === undefined) return []
  const deletion = deletionOrder(volume)
  return deletion === undefined ? moveOrders(volume) : [deletion]
}

export function volumesOutbox(needs: VolumesOutboxNeeds): Loop {
  const { broker, epoch, origin, hold, clock, log } = needs
  const queue = workQueue(clock)
  const orders = new Map<string, Map<string, NodeVolumeOrder>>()
  const holders = new Map<string, Set<string>>()
  const published = new Map<string, string>()
  let version = 0

  const poolChanged = (pool: string) => {
    for (const node of holders.get(pool) ?? []) queue.addAfter(node, debounceMs)
  }
  const volumes = informer(needs, 'persistentvolumes', (present, previous) => {
    const [before = [], now = []] = [previous, present].map(ordersAbout)
    for (const { pool, uid } of before) {
      const own = orders.get(pool)
      own?.delete(uid)
      if (own?.size === 0) orders.delete(pool)
    }
    for (const order of now) orders.set(order.pool, (orders.get(order.pool) ?? new Map()).set(order.uid, order))
    for (const pool of new Set([...before, ...now].map((order) => order.pool))) poolChanged(pool)
  })
  const nodes = informer(needs, 'nodes', (present, previous) => {
    const name = (present ?? previous)?.metadata.name ?? ''
    const [before, now] = [previous, present].map((one) => (one === undefined ? [] : labelledPools(one)))
    if (present !== undefined && String(before) === String(now)) return
    for (const pool of before ?? []) {
      holders.get(pool)?.delete(name)
      if (holders.get(pool)?.size === 0) holders.delete(pool)
    }
    for (const pool of now ?? []) holders.set(pool, (holders.get(pool) ?? new Set()).add(name))
    queue.add(name)
  })
  hold?.onRelease(() => {
    for (const pool of orders.keys()) poolChanged(pool)
  })

  const ordersFor = (name: string): readonly NodeVolumeOrder[] => {
    const node = nodes.get({ namespace: '', name })
    const own = node === undefined ? [] : labelledPools(node).flatMap((pool) => [...(orders.get(pool)?.values() ?? [])])
    return own.sort((a, b) => (a.uid < b.uid ? -1 : 1)).slice(0, mostOrders)
  }

  const reconcile = async (name: string): Promise<Reconciled> => {
    if (nodes.get({ namespace: '', name }) === undefined) {
      // Another machine may take the name.
      if (published.delete(name)) await broker.withdraw({ kind: 'volumes', node: name })
      return undefined
    }
    if (hold?.holds('statefulsets') === true) return undefined
    const own = ordersFor(name)
    const text = JSON.stringify(own)
    if (text === (published.get(name) ?? '[]')) return undefined
    version += 1
    const message: VolumesMessage = { epoch, version, store: origin.id, orders: own }
    await broker.publish({ kind: 'volumes', node: name }, JSON.stringify(message))
    published.set(name, text)
    return undefined
  }

  const publishing = async (signal: AbortSignal) => {
    await Promise.all([volumes.listed, nodes.listed])
    if (!signal.aborted) await runController({ name: 'volumes-outbox', reconcile }, queue, log, signal)
  }
  return {
    name: 'volumes-outbox',
    run: (signal) =>
      runLoops(
        [
          { name: 'volumes-outbox-volumes', run: volumes.run },
          { name: 'volumes-outbox-nodes', run: nodes.run },
          { name: 'volumes-outbox-messages', run: publishing },
        ],
        signal,
        log,
      ),
  }
}
