/** Which nodes have pods that use something: counted, so that a node is left out only after its last such pod. */

export interface NodesUsing {
  /** A pod of the node uses it (1), or does so no longer (-1). */
  add(used: string, node: string, by: 1 | -1): void
  nodesOf(used: string): readonly string[]
}

export function nodesUsing(): NodesUsing {
  const counts = new Map<string, Map<string, number>>()
  return {
    add(used, node, by) {
      const nodes = counts.get(used) ?? new Map<string, number>()
      const left = (nodes.get(node) ?? 0) + by
      if (left > 0) nodes.set(node, left)
      else nodes.delete(node)
      if (nodes.size > 0) counts.set(used, nodes)
      else counts.delete(used)
    },
    nodesOf: (used) => [...(counts.get(used)?.keys() ?? [])],
  }
}
