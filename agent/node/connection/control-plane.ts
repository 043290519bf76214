/** The control plane as the managers of a node use it. On the wire it is MQTT: `agent/adapters/mqtt/mqtt-control-plane.ts`. */
import type { ReceivedDesired } from '../../../api/desired.ts'
import type { Event } from '../../../api/event.ts'
import type { PoliciesMessage } from '../../../api/network/node-policies.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ServicesMessage } from '../../../api/network/service-endpoints.ts'
import type { NodeStatus } from '../../../api/node.ts'
import type { StorageMessage, VolumesMessage } from '../../../api/storage/volume-messages.ts'
import type { CallMessage, PodMessage, StatsMessage } from '../../../api/topics.ts'
import type { PublishedServers } from './controller-servers.ts'

/** Why the node leaves, and when it is expected back; undefined: not known. */
export type Leave = { readonly reason: string; readonly expectedBackSeconds?: number }

/**
 * Reports never wait for the network and never fail: the latest state of each topic is kept, published as soon as
 * there is a connection, and published again on every reconnect.
 */
export interface ControlPlane {
  reportNodeStatus(status: NodeStatus): void
  /** Reports that the last status still holds; false if the controller has no short form for that: report the status itself. */
  confirmNodeStatus(): boolean
  reportPod(pod: PodMessage): void
  /** Nothing of this pod is left on the machine. */
  reportPodGone(uid: string): void
  reportEvent(event: Event): void
  /** Sent now, or dropped: the next message replaces it. */
  sendStats(message: StatsMessage): void
  /** Publishes the latest state of the node and its pods again. */
  reportEverything(): void
  /** Publishes which contents the node holds; at the beginning of a connection that happens by itself. */
  reportContents(): void
  /** The volumes of this node, whole: published at the beginning of each connection, and on change. */
  reportStorage(message: StorageMessage): void
  /** How long the lease is, in seconds: as configured, within what the controller grants. */
  readonly leaseDurationSeconds: number
  /** Sends the heartbeat; false if the network accepts nothing now. */
  renewLease(): boolean
  readonly connected: boolean
  /** All reports are acknowledged, or there is no connection. */
  readonly settled: boolean
  /** Announces the leave before the connection ends; undefined: the node stays after all. Resolves when it is acknowledged. */
  publishLeave(leave: Leave | undefined): Promise<void>
}

/** The messages of the control plane to a node. */
export interface ControlPlaneListener {
  desired(message: ReceivedDesired): void
  /** The names of the contents that the node holds; undefined while the checkpoint is not read. */
  heldContents?(): readonly string[] | undefined
  /** A client queries the resource usage of the node. */
  readonly stats?: (asked: CallMessage) => void
  /** The controller requests a session under this id. */
  readonly session?: (id: string) => void
  /** A connection stands. */
  connected?(): void
  /** The connection has ended, by either side or by itself. */
  disconnected?(): void
  /** The controller's store: one with another ID may have no Node object for this node. */
  store?(id: string): void
  /** The time of the controller's clock: now, or (`isLive` false) at some moment before. */
  controllerTime?(wallMs: number, isLive: boolean): void
  /** The addresses of all controllers. */
  servers?(servers: PublishedServers): void
  /** A hash of the authorities that it trusts. */
  trust?(hash: string): void
  /** How the nodes of the fleet reach each other's pods. */
  network?(message: NetworkMessage): void
  /** All Services of one shard. */
  services?(shard: number, message: ServicesMessage): void
  /** The controller publishes neither of them. */
  networkOff?(): void
  /** The NetworkPolicies of the namespaces that have pods on this node. */
  policies?(message: PoliciesMessage): void
  /** The controller publishes none. */
  policiesOff?(): void
  /** Orders for volumes of this node, from the controller that announced itself. */
  volumes?(message: VolumesMessage): void
  /** A controller has announced itself whose orders are not received yet: earlier ones do not count. */
  volumesOff?(): void
}
