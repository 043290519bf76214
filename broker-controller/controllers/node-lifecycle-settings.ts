/** How patient the node lifecycle controller is. Defaults are Kubernetes' own where it has the setting. */
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
  /** Ours: a link that comes back within this time was never gone. */
  nodeConnectionLossDebounceMs: 5_000,
  nodeEvictionRate: 0.1,
  secondaryNodeEvictionRate: 0.01,
  unhealthyZoneThreshold: 0.55,
  largeClusterSizeThreshold: 50,
  /** Ours: a node that promises to be away for longer is believed so long. */
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
