/** The status of a Node after its report. The controller's clock stamps the conditions; the node's own is not trusted. */

import { isExtendedResource } from '../../../api/limits/resource-names.ts'
import { isDevice } from '../../../api/node/device-names.ts'
import { healthConditionTypes, type NodeCondition, type NodeStatus, nodeConditionTypes } from '../../../api/node.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { equalJSON } from '../../store/equal-json.ts'

/**
 * The node's status after its report, which replaces the one before. The heartbeat time of its conditions is now; so is the
 * transition time where the status differs. Conditions that others wrote stay, up to `mostForeignConditions`, and so do
 * extended resources (pkg/kubelet/nodestatus/setters.go, MachineInfo, changes only the capacity that the machine has).
 */
export function nodeStatusAfter(before: NodeStatus | undefined, report: NodeStatus, nowMs: number): NodeStatus {
  const now = rfc3339(nowMs)
  const present = before?.conditions ?? []
  const reported = (report.conditions ?? []).map((condition) => {
    const earlier = present.find(({ type }) => type === condition.type)
    const unchanged = earlier?.status === condition.status ? earlier.lastTransitionTime : undefined
    return { ...condition, lastHeartbeatTime: now, lastTransitionTime: unchanged ?? now }
  })
  const types = new Set(reported.map(({ type }) => type))
  const ready = present.find(({ type }) => type === 'Ready')
  const others = present.filter((condition) => !types.has(condition.type) && !isReported(condition, ready))
  const conditions = [...others.slice(0, mostForeignConditions), ...reported]
  return { ...ownFields(report), ...volumesAfter(before, report), ...resourcesAfter(before, report), conditions }
}

function ownFields({ volumesInUse: _, volumesAttached: __, ...fields }: NodeStatus): NodeStatus {
  return fields
}

/** An agent that has started does not report the volumes that it has mounted before it has read them. Where they are attached others write. */
function volumesAfter(before: NodeStatus | undefined, report: NodeStatus): NodeStatus {
  const { volumesInUse = before?.volumesInUse ?? [] } = report
  const volumesAttached = before?.volumesAttached
  return { ...(volumesInUse.length > 0 && { volumesInUse }), ...(volumesAttached && { volumesAttached }) }
}

type Resources = Pick<NodeStatus, 'capacity' | 'allocatable'>

/** All of an added resource is allocatable. Devices are the node's own: one that it no longer reports is gone. */
function resourcesAfter(before: NodeStatus | undefined, { capacity = {}, allocatable = {} }: NodeStatus): Resources {
  const added = Object.entries(before?.capacity ?? {})
    .filter(([name]) => isExtendedResource(name) && !isDevice(name) && !Object.hasOwn(capacity, name))
    .slice(0, mostForeignResources)
  if (added.length === 0) return {}
  const resources = Object.fromEntries(added)
  return { capacity: { ...capacity, ...resources }, allocatable: { ...allocatable, ...resources } }
}

/**
 * Is this status the one before, so that it need not be written? Heartbeat times count once they are older than `restampMs`:
 * agents refresh them every 5 minutes.
 */
export function isUnchangedStatus(before: NodeStatus | undefined, after: NodeStatus, nowMs: number): boolean {
  const { conditions: earlier = [], ...rest } = before ?? {}
  const { conditions = [], ...restAfter } = after
  return (
    earlier.length === conditions.length &&
    conditions.every((condition, i) => isSameButHeartbeat(condition, earlier[i], nowMs)) &&
    equalJSON(restAfter, rest)
  )
}

const restampMs = 4 * 60_000

function isSameButHeartbeat(after: NodeCondition, before: NodeCondition | undefined, nowMs: number): boolean {
  if (after === before) return true
  const ageMs = nowMs - Date.parse(before?.lastHeartbeatTime ?? '')
  if (!(ageMs >= 0 && ageMs < restampMs)) return false
  const { lastHeartbeatTime: _, ...rest } = { ...before }
  const { lastHeartbeatTime: __, ...restAfter } = after
  return equalJSON(restAfter, rest)
}

/** Conditions of controllers and node-problem detectors, which write them through the API. */
const mostForeignConditions = 32

/** Extended resources that administrators write through the API. */
const mostForeignResources = 64

const agentTypes: ReadonlySet<string> = new Set([...nodeConditionTypes, ...healthConditionTypes])

/** Did the node itself report this condition before? All conditions of one report are stamped with one time. */
function isReported({ type, lastHeartbeatTime }: NodeCondition, ready: NodeCondition | undefined): boolean {
  if (agentTypes.has(type)) return true
  return lastHeartbeatTime !== undefined && lastHeartbeatTime === ready?.lastHeartbeatTime
}

/**
 * The node's last report, taken from its status: the conditions that were stamped together with Ready. undefined: Ready is not from
 * the node, because the controller set it to Unknown, or there is none.
 */
export function lastReport(status: NodeStatus | undefined): NodeStatus | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  if (ready === undefined || ready.status === 'Unknown') return undefined
  const conditions = status?.conditions?.filter(({ lastHeartbeatTime: at }) => at === ready.lastHeartbeatTime)
  return { ...status, conditions: conditions ?? [] }
}
