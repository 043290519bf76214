/**
 * Loop: volumes whose data is to be deleted, moved or backed up → one retained message for each node that has the pool of one, or was chosen for one on a
 * share, with all its orders. A node that never had an order has no message.
 */
import { backupOrders } from '../../../api/backups/volume-backup.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import { labelledPools } from '../../../api/storage/pools.ts'
import { mostOrders, type NodeVolumeOrder, type VolumesMessage } from '../../../api/storage/volume-messages.ts'
import { moveOrders } from '../../../api/storage/volume-move.ts'
import { deletionOrder, targetOfOrder } from '../../../api/storage/volume-orders.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { RestoreHold } from '../../store/checkpoints/restore-hold.ts'
import { type InformerNeeds, informer } from '../../store/informer.ts'
import type { StoredObject, StoreOrigin } from '../../store/store.ts'
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

export function volumesOutbox(needs: VolumesOutboxNeeds): Loop {
  const { broker, epoch, origin, hold, clock, log } = needs
  const queue = workQueue(clock)
  /** By the key of what follows them. */
  const orders = new Map<string, Map<string, NodeVolumeOrder>>()
  /** The nodes that have a pool, by its key. */
  const holders = new Map<string, Set<string>>()
  const published = new Map<string, string>()
  let version = 0

  const targetChanged = (target: string) => {
    for (const node of holders.get(target) ?? []) queue.addAfter(node, debounceMs)
  }
  const volumes = informer(needs, 'persistentvolumes', (present, previous) => {
    const [before = [], now = []] = [previous, present].map((one) => one && targeted(one, origin.id))
    for (const { target, order } of before) {
      const own = orders.get(target)
      own?.delete(order.uid)
      if (own?.size === 0) orders.delete(target)
    }
    for (const { target, order } of now) orders.set(target, (orders.get(target) ?? new Map()).set(order.uid, order))
    for (const target of new Set([...before, ...now].map((one) => one.target))) targetChanged(target)
  })
  const nodes = informer(needs, 'nodes', (present, previous) => {
    const name = (present ?? previous)?.metadata.name ?? ''
    const [before, now] = [previous, present].map((one) => (one === undefined ? [] : targetsOf(one)))
    if (present !== undefined && String(before) === String(now)) return
    for (const target of before ?? []) {
      holders.get(target)?.delete(name)
      if (holders.get(target)?.size === 0) holders.delete(target)
    }
    for (const target of now ?? []) holders.set(target, (holders.get(target) ?? new Set()).add(name))
    queue.add(name)
  })
  hold?.onRelease(() => {
    for (const target of orders.keys()) targetChanged(target)
  })

  const ordersFor = (name: string): readonly NodeVolumeOrder[] => {
    const node = nodes.get({ namespace: '', name })
    const own = node === undefined ? [] : targetsOf(node).flatMap((target) => [...(orders.get(target)?.values() ?? [])])
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

type Targeted = { readonly target: string; readonly order: NodeVolumeOrder }

/** With the keys of what follows the orders. A volume that is being moved or backed up is not deleted meanwhile; it is never both. */
function targeted(volume: PersistentVolume, store: string): readonly Targeted[] {
  const deletion = deletionOrder(volume)
  if (deletion === undefined)
    return [...moveOrders(volume), ...backupOrders(volume)].map((order) => ({ target: `pool/${order.pool}`, order }))
  const to = targetOfOrder(volume, store)
  if (to === undefined) return []
  return [{ target: to.node === undefined ? `pool/${to.pool}` : `node/${to.node}`, order: deletion }]
}

/** The keys of what this node follows. */
function targetsOf(node: StoredObject<'nodes'>): readonly string[] {
  return [`node/${node.metadata.name}`, ...labelledPools(node).map((pool) => `pool/${pool}`)]
}
