/** The volumes on this machine, the CSI drivers that mount some of them, and the orders of the controller for volumes. */
import { join } from 'node:path'
import type { ApiClient } from '../../daemon/api-client.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { csiRecords } from '../adapters/csi/csi-records.ts'
import { csiRegistry } from '../adapters/csi/csi-registry.ts'
import { type CsiStatsLoop, csiStats } from '../adapters/csi/csi-stats.ts'
import { type CsiVolumes, csiVolumes } from '../adapters/csi/csi-volumes.ts'
import { type DiskVolumes, volumeStore } from '../adapters/disk/volume-store.ts'
import { poolsOnDiskOf } from '../adapters/disk/volumes/pools-on-disk.ts'
import type { AgentConfiguration } from '../configuration.ts'
import type { ClaimSpace } from '../eviction/claim-space.ts'
import type { ControlPlane, ControlPlaneListener } from '../node/connection/control-plane.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { csiNodeReport } from '../pods/volumes/csi/csi-node-report.ts'
import { volumeEvents } from '../pods/volumes/csi/volume-events.ts'
import { volumeGrowth } from '../pods/volumes/csi/volume-growth.ts'
import { type VolumeOrders, volumeOrders } from '../pods/volumes/volume-orders.ts'
import type { VolumeFigures } from '../usage/volume-metrics.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type VolumeParts = {
  readonly root: string
  readonly nodeName: string
  readonly api: Pick<ApiClient, 'get' | 'post' | 'patch'>
  readonly machine: AgentMachine
  readonly configuration: Pick<AgentConfiguration, 'pools'>
  readonly controlPlane: ControlPlane
  readonly event: (event: NodeEvent) => void
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly log: Log
}

export function assembleVolumes(parts: VolumeParts): {
  readonly disk: DiskVolumes
  readonly orders: VolumeOrders
  /** Those on the disk of the data directory. */
  readonly claims: () => Promise<readonly ClaimSpace[]>
  /** The volumes, as they were measured last. */
  readonly figures: () => VolumeFigures
  readonly loops: readonly Loop[]
} {
  const { root, machine, configuration, controlPlane, event, board, write, log } = parts
  const { volumes, watch } = machine
  const kubeletDirectory = join(root, 'var/lib/kubelet')
  const csi = assembleCsi(parts, kubeletDirectory)
  const kubelet = { directory: kubeletDirectory, log }
  const disk = volumeStore(volumes, { ...configuration, csi: csi.volumes, kubelet })
  const orders = volumeOrders({
    trash: disk.trash,
    moves: disk.moves,
    onRelease: disk.onRelease,
    stores: disk.stores,
    controlPlane,
    event,
    writes: write('pools'),
    clock: watch.clockFor('volume-orders'),
    log,
  })
  const claims = async () => {
    const here = await poolsOnDiskOf(volumes.dataDirectory, board.pools.get() ?? [])
    return orders.measured().volumes.filter(({ pool }) => here.has(pool))
  }
  const figures = () => ({ ...orders.measured(), drivers: csi.measured() })
  return { disk, orders, claims, figures, loops: csi.loops }
}

function assembleCsi(
  { nodeName, api, machine, controlPlane, board, write, log }: VolumeParts,
  kubeletDirectory: string,
): {
  readonly volumes: CsiVolumes
  readonly measured: CsiStatsLoop['measured']
  readonly loops: readonly Loop[]
} {
  const { volumes: folders, watch, clock } = machine
  const registry = csiRegistry({
    kubeletDirectory,
    writes: write('csiDrivers'),
    open: () => volumes.open(),
    release: () => volumes.release(),
    clock: watch.clockFor('csi-drivers'),
    log,
  })
  const { dataDirectory: agent } = folders
  const events = volumeEvents({ controlPlane, api, clock, log }, nodeName)
  const growth = volumeGrowth({ api, events, clock, log }, nodeName)
  const { driver } = registry
  const hasDrivers = () => (board.csiDrivers.get() ?? []).length > 0
  const records = csiRecords(kubeletDirectory, agent)
  const volumes = csiVolumes({ records, driver, growth, events, writes: write('volumesInUse'), log })
  const stats = csiStats({ records, driver, hasDrivers, events, clock: watch.clockFor('csi-stats'), log })
  const report = csiNodeReport({ reads: board, api, clock: watch.clockFor('csi-node'), log }, nodeName)
  return { volumes, measured: stats.measured, loops: [registry, report, stats] }
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
