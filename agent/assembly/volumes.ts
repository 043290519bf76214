/** The volumes on this machine, and the orders of the controller for them. */
import type { Log } from '../../daemon/log.ts'
import { type DiskVolumes, volumeStore } from '../adapters/disk/volume-store.ts'
import { knownStores } from '../adapters/disk/volumes/disk-trash.ts'
import { poolsOnDiskOf } from '../adapters/disk/volumes/pools-on-disk.ts'
import type { AgentConfiguration } from '../configuration.ts'
import type { ClaimSpace } from '../eviction/claim-space.ts'
import type { ControlPlane, ControlPlaneListener } from '../node/connection/control-plane.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { type VolumeOrders, volumeOrders } from '../pods/volumes/volume-orders.ts'
import type { AgentBoard } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type VolumeParts = {
  readonly machine: AgentMachine
  readonly configuration: Pick<AgentConfiguration, 'pools'>
  readonly controlPlane: ControlPlane
  readonly event: (event: NodeEvent) => void
  readonly board: AgentBoard
  readonly log: Log
}

export function assembleVolumes({ machine, configuration, controlPlane, event, board, log }: VolumeParts): {
  readonly disk: DiskVolumes
  readonly orders: VolumeOrders
  /** Those on the disk of the data directory. */
  readonly claims: () => Promise<readonly ClaimSpace[]>
} {
  const { volumes, watch } = machine
  const disk = volumeStore(volumes, configuration)
  const orders = volumeOrders({
    trash: disk.trash,
    moves: disk.moves,
    stores: knownStores(volumes.dataDirectory),
    controlPlane,
    event,
    writes: board,
    clock: watch.clockFor('volume-orders'),
    log,
  })
  const claims = async () => {
    const here = await poolsOnDiskOf(volumes.dataDirectory, board.pools.get() ?? [])
    return orders.measured().volumes.filter(({ pool }) => here.has(pool))
  }
  return { disk, orders, claims }
}

/** The listener with that of the orders, which follows the store and the end of a connection, too. */
export function withOrders(listener: ControlPlaneListener, { listener: orders }: VolumeOrders): ControlPlaneListener {
  return {
    ...listener,
    ...orders,
    store(id) {
      listener.store?.(id)
      orders.store(id)
    },
    disconnected() {
      listener.disconnected?.()
      orders.disconnected()
    },
  }
}
