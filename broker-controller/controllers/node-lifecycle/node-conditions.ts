/** The conditions of a silent node. */
import { type Node, type NodeCondition, nodeConditionTypes } from '../../../api/node.ts'
import { type NodeHealth, neverReportedReason, readyCondition, type Silence } from './node-health.ts'
import { absenceText } from './planned-absence.ts'

/** The message of the conditions of a silent node. */
export function silenceText(silence: Silence, { absence }: Pick<NodeHealth, 'absence'>): string {
  switch (silence) {
    case 'silent':
      return 'Kubelet stopped posting node status.'
    case 'late':
      return absence === undefined ? 'The heartbeat of the node is late.' : absenceText(absence)
    case 'away':
    case 'disconnected':
      return absence === undefined ? 'The connection to the node was lost.' : absenceText(absence)
  }
}

/**
 * The node with its conditions Unknown; undefined when Ready has this status already. The heartbeat stays what the node last
 * wrote. When a late heartbeat, a lost connection or a leave has become a proven silence, the messages change and the
 * transition times stay.
 */
export function silentNode<N extends Node>(
  node: N,
  silence: { readonly is: Silence; readonly text: string },
  now: string,
): N | undefined {
  const before = readyCondition(node)
  const isUnproven = silence.is === 'disconnected' || silence.is === 'late'
  const becameProven = !isUnproven && before?.reason === unknownReason && before.message !== silence.text
  if (before?.status === 'Unknown' && !becameProven) return undefined
  const present = node.status?.conditions ?? []
  const missing = nodeConditionTypes
    .filter((type) => !present.some((condition) => condition.type === type))
    .map((type) => neverReported(type, node, now))
  const conditions = [...present.map((condition) => silentCondition(condition, silence.text, now)), ...missing]
  return { ...node, status: { ...node.status, conditions } }
}

const unknownReason = 'NodeStatusUnknown'

function silentCondition(condition: NodeCondition, message: string, now: string): NodeCondition {
  if (!(nodeConditionTypes as readonly string[]).includes(condition.type)) return condition
  if (condition.status === 'Unknown') {
    return condition.reason === unknownReason ? { ...condition, message } : condition
  }
  return { ...condition, status: 'Unknown', reason: unknownReason, message, lastTransitionTime: now }
}

function neverReported(type: string, node: Node, now: string): NodeCondition {
  return {
    type,
    status: 'Unknown',
    reason: neverReportedReason,
    message: 'Kubelet never posted node status.',
    lastHeartbeatTime: node.metadata.creationTimestamp ?? now,
    lastTransitionTime: now,
  }
}
