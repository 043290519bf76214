/** When pods of a node move to another network, once their fleet has turned its network on. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'

/** Time until a pod runs again, if its image is present. */
const eachMs = 20_000
/** Time until the last node moves. In a large fleet several nodes move at a time. */
const allMs = 30 * 60_000

/**
 * Docker's networks cannot be changed: pods are started again. Nodes do it one after the other, in the order of the message that all of
 * them have received, so that not all pods of a Deployment are away at once. Milliseconds from now.
 */
export function moveDelayMs({ nodes }: NetworkMessage, nodeName: string): number {
  const index = nodes.findIndex(({ name }) => name === nodeName)
  return Math.max(0, index) * Math.min(eachMs, allMs / Math.max(1, nodes.length))
}
