/** Where shall this pod run? */
import type { Pod } from '../../api/pod.ts'
import type { Cluster } from './cluster.ts'
import { refusals, unschedulableMessage } from './filter.ts'
import type { NodeUsage } from './node-usage.ts'
import { bestNode } from './score.ts'

export type Placement =
  | { readonly found: true; readonly nodeName: string }
  /** The sentence for the event and the condition. */
  | { readonly found: false; readonly message: string }

/** `start`: the node to begin with; `random`: decides between equals. */
export function placePod(pod: Pod, nodes: Cluster, start: number, random: () => number): Placement {
  const enough = nodesToFind(nodes.nodeCount)
  const fitting: NodeUsage[] = []
  const refused: (readonly string[])[] = []
  for (const usage of nodes.from(start)) {
    const reasons = refusals(pod, usage)
    if (reasons.length > 0) refused.push(reasons)
    else if (fitting.push(usage) >= enough) break
  }
  if (fitting.length === 0) return { found: false, message: unschedulableMessage(refused) }
  return { found: true, nodeName: bestNode(pod, fitting, nodes.spread(pod), random).node.metadata.name }
}

/** As Kubernetes: a hundred nodes are all looked at; of more, 50 % less 1 % for each 125 nodes, at least 5 % and 100. */
export function nodesToFind(nodeCount: number): number {
  if (nodeCount <= 100) return nodeCount
  const percent = Math.max(5, 50 - Math.floor(nodeCount / 125))
  return Math.max(100, Math.floor((nodeCount * percent) / 100))
}
