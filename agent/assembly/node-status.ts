/** The status of the node, from the configuration, the machine and the board. */
import type { NodeAddress } from '../../api/node.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { nodeVersion } from '../../daemon/process/version.ts'
import { findDevices } from '../adapters/kernel/host-devices.ts'
import type { Inventory } from '../adapters/kernel/host-inventory.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { reservedBelow } from '../eviction/thresholds.ts'
import type { ControlPlane } from '../node/connection/control-plane.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { type NodeStatusManager, nodeStatusManager } from '../node/status/node-status-manager.ts'
import { runtimeView } from '../node/status/runtime-health.ts'
import { deviceCapacity } from '../pods/containers/devices.ts'
import type { AgentBoard, WriteEnds } from './board.ts'

export type NodeStatusParts = {
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly configuration: AgentConfiguration
  readonly nodeName: string
  readonly inventory: Inventory
  readonly addresses: () => Promise<readonly NodeAddress[]>
  /** The machine was started since the last start of the agent. */
  readonly rebooted: boolean
  readonly controlPlane: Pick<ControlPlane, 'reportNodeStatus' | 'confirmNodeStatus'>
  readonly event: (event: NodeEvent) => void
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export function assembleNodeStatus(parts: NodeStatusParts): NodeStatusManager {
  const { board, configuration, nodeName, inventory, addresses, rebooted, controlPlane, event, clock, random, log } =
    parts
  return nodeStatusManager(
    {
      ...inventory,
      addresses,
      devices: async () => deviceCapacity(await findDevices(configuration.devices)),
      reads: { ...board, runtime: runtimeView(board.runtime, clock) },
      writes: parts.write('nodeStatus'),
      controlPlane,
      event,
      clock,
      random,
      log,
    },
    {
      nodeName,
      agentVersion: nodeVersion,
      maxPods: configuration.maxPods,
      podsPerCore: configuration.podsPerCore,
      reserved: [
        configuration.systemReserved,
        configuration.kubeReserved,
        reservedBelow(configuration.evictionHard, inventory.machine),
      ],
      updateMs: configuration.nodeStatusUpdateMs,
      reportMs: configuration.nodeStatusReportMs,
      rebooted,
    },
  )
}
