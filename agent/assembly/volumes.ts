/** The volumes on this machine, and the orders of the controller for them. */
import type { Log } from '../../daemon/log.ts'
import { type DiskVolumes, volumeStore } from '../adapters/disk/volume-store.ts'
import { knownStores } from '../adapters/disk/volumes/disk-trash.ts'
import type { AgentConfiguration } from '../configuration.ts'
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
} {
  const { volumes, watch } = machine
  const disk = volumeStore(volumes, configuration)
  const orders = volumeOrders({
    trash: disk.trash,
    stores: knownStores(volumes.dataDirectory),
    controlPlane,
    event,
    writes: board,
    clock: watch.clockFor('volume-orders'),
    log,
  })
  return { disk, orders }
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
