/** What do a silent node's conditions say? */
import { type Node, type NodeCondition, nodeConditionTypes } from '../../api/node.ts'
import { readyCondition, type Silence } from './node-health.ts'

const messages: { readonly [silence in Silence]: string } = {
  silent: 'Kubelet stopped posting node status.',
  disconnected: 'The connection to the node was lost.',
}

/**
 * The node with its conditions Unknown; undefined when Ready says so already. The heartbeat stays what the node last
 * wrote. When a lost connection has become a proven silence, the messages say so and the transition times stay.
 */
export function silentNode<N extends Node>(node: N, silence: Silence, now: string): N | undefined {
  const before = readyCondition(node)
  if (before?.status === 'Unknown' && !(silence === 'silent' && isOnlyDisconnected(before))) return undefined
  const present = node.status?.conditions ?? []
  const missing = nodeConditionTypes
    .filter((type) => !present.some((condition) => condition.type === type))
    .map((type) => neverReported(type, node, now))
  const conditions = [...present.map((condition) => silentCondition(condition, silence, now)), ...missing]
  return { ...node, status: { ...node.status, conditions } }
}

/** Is this Unknown for the sake of a broken connection alone? Then nothing is evicted on its account. */
export function isOnlyDisconnected(ready: NodeCondition | undefined): boolean {
  return ready?.status === 'Unknown' && ready.message === messages.disconnected
}

function silentCondition(condition: NodeCondition, silence: Silence, now: string): NodeCondition {
  if (!(nodeConditionTypes as readonly string[]).includes(condition.type)) return condition
  if (condition.status === 'Unknown') {
    return isOnlyDisconnected(condition) ? { ...condition, message: messages[silence] } : condition
  }
  return {
    ...condition,
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: messages[silence],
    lastTransitionTime: now,
  }
}

function neverReported(type: string, node: Node, now: string): NodeCondition {
  return {
    type,
    status: 'Unknown',
    reason: 'NodeStatusNeverUpdated',
    message: 'Kubelet never posted node status.',
    lastHeartbeatTime: node.metadata.creationTimestamp ?? now,
    lastTransitionTime: now,
  }
}
