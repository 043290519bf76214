/** What the managers of a node need of the control plane. On the wire it is MQTT: `adapters/mqtt-control-plane.ts`. */
import type { Desired } from '../../../api/desired.ts'
import type { Event } from '../../../api/event.ts'
import type { NodeStatus } from '../../../api/node.ts'
import type { CallMessage, PodMessage, StatsMessage } from '../../../api/topics.ts'

/** Why the node goes, and when it is back; left out: nobody knows. */
export type Leave = { readonly reason: string; readonly expectedBackSeconds?: number }

/**
 * Reports never wait for the network and never fail: the newest of each thing is kept and sent when the link is there,
 * and everything is said again on every reconnect.
 */
export interface ControlPlane {
  reportNodeStatus(status: NodeStatus): void
  /** Reports that the last status still holds; false where there is no short form for that, and the status itself must be reported. */
  confirmNodeStatus(): boolean
  reportPod(pod: PodMessage): void
  /** Nothing of this pod is left on the machine. */
  reportPodGone(uid: string): void
  reportEvent(event: Event): void
  /** Sent now, or not at all: the next one says more. */
  sendStats(message: StatsMessage): void
  /** Says all that was said of the node and its pods once more. */
  reportEverything(): void
  /** How long the lease is, in seconds: as configured, within what the controller grants. */
  readonly leaseDurationSeconds: number
  /** The heartbeat; false when it could not be handed to the network now. */
  renewLease(): boolean
  readonly connected: boolean
  /** All that was reported is taken, or there is nobody to take it. */
  readonly settled: boolean
  /** Says goodbye ahead of the end of the connection; undefined: the node stays after all. Resolves when it was taken. */
  takeLeave(leave: Leave | undefined): Promise<void>
}

/** What the control plane tells a node. */
export interface ControlPlaneListener {
  desired(message: Desired): void
  /** Somebody wants to know who uses how much. */
  readonly stats?: (asked: CallMessage) => void
  /** Which store the controller has: another one than before may not know this node. */
  store?(id: string): void
  /** The controller's clock said so: now, or (`isLive` false) at some moment before. */
  controllerTime?(wallMs: number, isLive: boolean): void
  /** Which authorities it trusts, in one short text. */
  trust?(hash: string): void
}
