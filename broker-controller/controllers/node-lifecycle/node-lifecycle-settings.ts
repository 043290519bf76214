/** The settings of the node lifecycle controller. Defaults are Kubernetes' own where it has the setting. */
import type { FlappingSettings } from './flapping.ts'
import type { LinkSettings } from './link-suspicion.ts'
import type { RosterSettings } from './node-roster.ts'
import type { ConditionTaintSettings } from './node-taints.ts'
import type { AbsenceSettings } from './planned-absence.ts'
import type { ZoneSettings } from './zones.ts'

export type NodeLifecycleSettings = RosterSettings &
  ZoneSettings &
  AbsenceSettings &
  LinkSettings &
  FlappingSettings &
  ConditionTaintSettings

export const defaultNodeLifecycleSettings: NodeLifecycleSettings = {
  nodeMonitorPeriodMs: 5_000,
  /** 50 s since Kubernetes 1.32: a lease may miss four of its 10 s renewals. */
  nodeMonitorGracePeriodMs: 50_000,
  nodeStartupGracePeriodMs: 60_000,
  /** Ours: a metered node has 20 min. Evictions begin 37.5 min after the last heartbeat of a node with this much. */
  nodeLeaseDurationLimitMs: 30 * 60_000,
  /**
   * Ours. A link that blinks closes no connection (TCP repeats what was lost), so a connection that ends without a
   * goodbye means that the agent or its kernel ended. The second is for an agent that reconnects at once.
   */
  nodeConnectionLossDebounceMs: 1_000,
  /** Ours. With a heartbeat every 10 s and looks every 0.5 s, a frozen node is Unknown within 14.5 s. */
  nodeHeartbeatToleranceMs: 3_500,
  nodeEvictionRate: 0.1,
  secondaryNodeEvictionRate: 0.01,
  unhealthyZoneThreshold: 0.55,
  largeClusterSizeThreshold: 50,
  /** Bramble's own: an announced absence delays evictions at most this long. */
  plannedAbsenceLimitMs: 30 * 60_000,
  linkSuspicionPatienceMs: 15 * 60_000,
  /** A silent link is noticed by each connection's keep-alive, and those are up to a heartbeat apart. */
  linkSuspicionWindowMs: 20_000,
  linkSuspicionShare: 0.5,
  linkSuspicionNodes: 5,
  flappingLosses: 4,
  flappingWindowMs: 15 * 60_000,
  flappingSettleTimeMs: 5 * 60_000,
  conditionTaints: [],
}
