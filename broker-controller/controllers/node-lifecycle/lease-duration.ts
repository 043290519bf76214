/**
 * The duration of a node's lease, and how long the node may be silent. A metered node renews its lease rarely and announces that; the
 * limit is the controller's, so that no node stays Ready by its own announcement.
 */
import { type Lease, leaseDurationAnnotation, usualLeaseDurationSeconds } from '../../../api/lease.ts'
import type { Node } from '../../../api/node.ts'

export type LeaseDurationSettings = {
  readonly nodeMonitorGracePeriodMs: number
  /** The longest lease that a node is given. */
  readonly nodeLeaseDurationLimitMs: number
}

/** As announced, within the limit, in milliseconds: by the Node, which outlives a restart of the controller, and by its Lease. */
export type AnnouncedLease = { readonly byNode: number; readonly byLease: number }

export const usualLease: AnnouncedLease = {
  byNode: usualLeaseDurationSeconds * 1000,
  byLease: usualLeaseDurationSeconds * 1000,
}

export function announcedByNode({ metadata }: Node, settings: LeaseDurationSettings): number {
  return bounded(Number(metadata.annotations?.[leaseDurationAnnotation] ?? usualLeaseDurationSeconds), settings)
}

export function announcedByLease({ spec }: Lease, settings: LeaseDurationSettings): number {
  return bounded(spec?.leaseDurationSeconds ?? usualLeaseDurationSeconds, settings)
}

function bounded(seconds: number, { nodeLeaseDurationLimitMs }: LeaseDurationSettings): number {
  const usualMs = usualLeaseDurationSeconds * 1000
  return seconds > 0 ? Math.min(seconds * 1000, Math.max(usualMs, nodeLeaseDurationLimitMs)) : usualMs
}

/** As Kubernetes since 1.32: 50 s of grace for a lease of 40 s. */
const gracePerLease = 1.25

/** How long the node may be silent before that is proven: longer than usual where its lease is longer than usual. */
export function graceOfLeaseMs({ byNode, byLease }: AnnouncedLease, settings: LeaseDurationSettings): number {
  const leaseMs = Math.max(byNode, byLease)
  const { nodeMonitorGracePeriodMs: usualMs } = settings
  return leaseMs > usualLeaseDurationSeconds * 1000 ? Math.max(usualMs, leaseMs * gracePerLease) : usualMs
}

/** An agent that has not received the grace period of this controller: 15 s for an attempt that was under way, then 20 s. */
const reconnectMs = 35_000

/** What a node that was known before the controller started has beyond its grace, so that it can connect within it. */
export function reconnectSlackMs(announced: AnnouncedLease, settings: LeaseDurationSettings): number {
  return Math.max(0, reconnectMs - graceOfLeaseMs(announced, settings))
}

/** How much later than its period a heartbeat may arrive: of a long period a tenth, for such a link is slow to come up, too. */
export function toleranceMs(heartbeatMs: number, usualToleranceMs: number): number {
  return Math.max(usualToleranceMs, heartbeatMs * 0.1)
}
