/** How patient the node lifecycle controller is. Defaults are Kubernetes' own where it has the setting. */
import {
  defaultFlappingLosses,
  defaultFlappingSettleTimeMs,
  defaultFlappingWindowMs,
  type FlappingSettings,
} from './flapping.ts'
import {
  defaultLinkSuspicionNodes,
  defaultLinkSuspicionPatienceMs,
  defaultLinkSuspicionShare,
  defaultLinkSuspicionWindowMs,
  type LinkSettings,
} from './link-suspicion.ts'
import {
  defaultNodeConnectionLossDebounceMs,
  defaultNodeMonitorGracePeriodMs,
  defaultNodeMonitorPeriodMs,
  defaultNodeStartupGracePeriodMs,
} from './node-health.ts'
import type { RosterSettings } from './node-roster.ts'
import type { ConditionTaintSettings } from './node-taints.ts'
import { type AbsenceSettings, defaultPlannedAbsenceLimitMs } from './planned-absence.ts'
import {
  defaultLargeClusterSizeThreshold,
  defaultNodeEvictionRate,
  defaultSecondaryNodeEvictionRate,
  defaultUnhealthyZoneThreshold,
  type ZoneSettings,
} from './zones.ts'

export type NodeLifecycleSettings = RosterSettings &
  ZoneSettings &
  AbsenceSettings &
  LinkSettings &
  FlappingSettings &
  ConditionTaintSettings

export const defaultNodeLifecycleSettings: NodeLifecycleSettings = {
  nodeMonitorPeriodMs: defaultNodeMonitorPeriodMs,
  nodeMonitorGracePeriodMs: defaultNodeMonitorGracePeriodMs,
  nodeStartupGracePeriodMs: defaultNodeStartupGracePeriodMs,
  nodeConnectionLossDebounceMs: defaultNodeConnectionLossDebounceMs,
  nodeEvictionRate: defaultNodeEvictionRate,
  secondaryNodeEvictionRate: defaultSecondaryNodeEvictionRate,
  unhealthyZoneThreshold: defaultUnhealthyZoneThreshold,
  largeClusterSizeThreshold: defaultLargeClusterSizeThreshold,
  plannedAbsenceLimitMs: defaultPlannedAbsenceLimitMs,
  linkSuspicionPatienceMs: defaultLinkSuspicionPatienceMs,
  linkSuspicionWindowMs: defaultLinkSuspicionWindowMs,
  linkSuspicionShare: defaultLinkSuspicionShare,
  linkSuspicionNodes: defaultLinkSuspicionNodes,
  flappingLosses: defaultFlappingLosses,
  flappingWindowMs: defaultFlappingWindowMs,
  flappingSettleTimeMs: defaultFlappingSettleTimeMs,
  conditionTaints: [],
}
