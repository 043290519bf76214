/**
 * The signs of life of a node and when they came. Every age is measured on the controller's monotonic clock from the moment a
 * change was seen; a time in an object only shows that something changed.
 */
import type { Lease } from '../../../api/lease.ts'
import type { Node, NodeCondition } from '../../../api/node.ts'
import { afterLoss, type Flapping, type FlappingSettings, flappingFrom, settledAtMs } from './flapping.ts'
import {
  type AnnouncedLease,
  announcedByLease,
  announcedByNode,
  graceOfLeaseMs,
  type LeaseDurationSettings,
  reconnectSlackMs,
  toleranceMs,
  usualLease,
} from './lease-duration.ts'
import { type Absence, type AbsenceSettings, absenceFrom, absenceKept, isExpectedLater } from './planned-absence.ts'

export type HealthSettings = AbsenceSettings &
  LeaseDurationSettings &
  FlappingSettings & {
    readonly nodeStartupGracePeriodMs: number
    readonly nodeConnectionLossDebounceMs: number
    readonly nodeHeartbeatToleranceMs: number
  }

/** On a node's Lease: what its connection to the broker last did. */
const connectionAnnotation = 'bramble.dev/connection'

export type NodeHealth = {
  /** When the node last gave a sign of life. */
  readonly lastSeenMs: number
  /** When Ready last became another status. */
  readonly readyChangedMs: number
  readonly ready: NodeCondition | undefined
  readonly renewTime: string | undefined
  /** How often its lease is renewed; undefined until this process saw a renewal, and after a full grace was given. */
  readonly heartbeatMs: number | undefined
  readonly announcedLease: AnnouncedLease
  /** Set while the connection is known to be lost or ended: since when. */
  readonly lostMs: number | undefined
  /** Set while the node is away with leave. */
  readonly absence: Absence | undefined
  /** Set while Ready is Unknown: since when, also from before the controller was restarted. */
  readonly unknownMs: number | undefined
  readonly flapping: Flapping
}

/** Now on both clocks: one to measure with, the other to understand `creationTimestamp`. */
export type Now = { readonly monotonicMs: number; readonly wallMs: number }

/**
 * The node seen for the first time. One that has reported starts with a full grace, so a controller that was restarted
 * finds no node silent; one that never has is as old as its object.
 */
export function firstSight(node: Node, lease: Lease | undefined, now: Now, settings: HealthSettings): NodeHealth {
  const ready = readyCondition(node)
  const ageMs = now.wallMs - Date.parse(node.metadata.creationTimestamp ?? '')
  const silentMs = ready === undefined && ageMs > 0 ? ageMs : 0
  const announcedLease = { ...usualLease, byNode: announcedByNode(node, settings) }
  const slackMs = ready === undefined ? 0 : reconnectSlackMs(announcedLease, settings)
  const health: NodeHealth = {
    lastSeenMs: now.monotonicMs - silentMs + slackMs,
    readyChangedMs: now.monotonicMs - silentMs,
    ready,
    renewTime: undefined,
    heartbeatMs: undefined,
    announcedLease,
    lostMs: undefined,
    absence: absenceKept(node, now, settings),
    unknownMs: ready?.status === 'Unknown' ? now.monotonicMs - sinceMs(ready, now) : undefined,
    flapping: flappingFrom(node, settings),
  }
  return lease === undefined ? health : seenLease(health, lease, now, settings)
}

/** The reason of the conditions that the controller writes on a node that never reported. */
export const neverReportedReason = 'NodeStatusNeverUpdated'

/**
 * A report is a sign of life when its heartbeat differs from the last one, or when Ready came or went. A change by the
 * controller itself does not count.
 */
export function seenNode(health: NodeHealth, node: Node, nowMs: number, settings: HealthSettings): NodeHealth {
  const ready = readyCondition(node)
  const isReport = ready?.reason !== neverReportedReason
  const isChanged = ready?.lastHeartbeatTime !== health.ready?.lastHeartbeatTime || !ready !== !health.ready
  const isSign = isReport && isChanged
  const announcedLease = { ...health.announcedLease, byNode: announcedByNode(node, settings) }
  const seen = { ...health, ready, announcedLease, lastSeenMs: isSign ? nowMs : health.lastSeenMs }
  const before = health.ready?.status
  if (ready?.status === before) return seen
  const isLoss = before === 'True' && !isExpectedLater(health.absence, nowMs)
  return {
    ...seen,
    readyChangedMs: nowMs,
    unknownMs: ready?.status === 'Unknown' ? nowMs : undefined,
    flapping: isLoss ? afterLoss(health.flapping, nowMs, settings) : health.flapping,
  }
}

/** A renewal is a sign of life, whatever its date: it may jump back. The connection's state only starts a clock. */
export function seenLease(health: NodeHealth, lease: Lease, now: Now, settings: HealthSettings): NodeHealth {
  const renewTime = lease.spec?.renewTime
  const isRenewed = renewTime !== undefined && renewTime !== health.renewTime
  const connection = connectionOf(lease)
  const isGone = connection === 'lost' || connection === 'goodbye'
  const byLease = announcedByLease(lease, settings)
  const { announcedLease } = health
  // Every field by name: a copy of the rest costs several times as much, and a fleet has a thousand renewals a second.
  return {
    ready: health.ready,
    readyChangedMs: health.readyChangedMs,
    unknownMs: health.unknownMs,
    flapping: health.flapping,
    renewTime: isRenewed ? renewTime : health.renewTime,
    heartbeatMs: isRenewed ? byLease / 4 : health.heartbeatMs,
    announcedLease: announcedLease.byLease === byLease ? announcedLease : { ...announcedLease, byLease },
    lastSeenMs: isRenewed ? now.monotonicMs : health.lastSeenMs,
    lostMs: isGone ? (health.lostMs ?? now.monotonicMs) : undefined,
    absence:
      connection === 'goodbye'
        ? absenceFrom(lease, health.absence, now, settings)
        : isGone || !isRenewed
          ? health.absence
          : undefined,
  }
}

export type Silence =
  /** Nothing for longer than the grace: proven. */
  | 'silent'
  /** The connection broke and did not come back within the debounce; not yet proven. */
  | 'disconnected'
  /** The heartbeat is late by more than the tolerance; not yet proven. */
  | 'late'
  /** The node is away and is not yet expected back. */
  | 'away'

/** Why this node is Unknown now; undefined: it is not. Exactly at a limit it is not yet. */
export function silenceOf(health: NodeHealth, settings: HealthSettings, nowMs: number): Silence | undefined {
  const isSilent = nowMs > silentAtMs(health, settings)
  const isGone = isDisconnected(health) && nowMs > health.lostMs + settings.nodeConnectionLossDebounceMs
  const isLate = nowMs > (lateAtMs(health, settings) ?? Number.POSITIVE_INFINITY)
  if (!isSilent && !isGone && !isLate) return undefined
  if (isExpectedLater(health.absence, nowMs)) return 'away'
  if (isSilent) return 'silent'
  return isGone ? 'disconnected' : 'late'
}

/** The moment after which the node counts as silent, unless a sign of life comes. */
export function silentAtMs(health: NodeHealth, settings: HealthSettings): number {
  const usualMs = graceOfLeaseMs(health.announcedLease, settings)
  const graceMs = health.ready === undefined ? settings.nodeStartupGracePeriodMs : usualMs
  return health.lastSeenMs + graceMs
}

/** The moment after which the heartbeat counts as late; undefined: the node has no heartbeat to be late with. */
export function lateAtMs({ ready, lastSeenMs, heartbeatMs }: NodeHealth, settings: HealthSettings): number | undefined {
  if (ready === undefined || heartbeatMs === undefined) return undefined
  return lastSeenMs + heartbeatMs + toleranceMs(heartbeatMs, settings.nodeHeartbeatToleranceMs)
}

/** The moment after which the node counts as disconnected; undefined while its connection is not known to be lost. */
export function disconnectedAtMs(health: NodeHealth, settings: HealthSettings): number | undefined {
  return isDisconnected(health) ? health.lostMs + settings.nodeConnectionLossDebounceMs : undefined
}

/** When a flapping node has been Ready for long enough; undefined: not before something changes. */
export function steadyAtMs(
  { flapping, ready, readyChangedMs }: NodeHealth,
  settings: HealthSettings,
): number | undefined {
  return settledAtMs(flapping, ready, readyChangedMs, settings)
}

/** A sign of life after the loss outweighs it: the will of an old connection may arrive late. */
function isDisconnected(health: NodeHealth): health is NodeHealth & { readonly lostMs: number } {
  return health.ready !== undefined && health.lostMs !== undefined && health.lastSeenMs <= health.lostMs
}

export function readyCondition(node: Node): NodeCondition | undefined {
  return node.status?.conditions?.find(({ type }) => type === 'Ready')
}

/** How long ago it changed, by the date; nothing if the date has jumped back since. */
function sinceMs({ lastTransitionTime = '' }: NodeCondition, { wallMs }: Now): number {
  return Math.max(0, wallMs - Date.parse(lastTransitionTime)) || 0
}

function connectionOf(lease: Lease): string | undefined {
  return lease.metadata.annotations?.[connectionAnnotation]
}
