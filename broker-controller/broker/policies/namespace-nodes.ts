/** Index of pods that have an address of their own: the nodes on which a namespace has some, and the namespaces of a node. */

export interface NamespaceNodes {
  /** `node` undefined: the pod is gone, or bound to none. Gives the nodes whose namespaces changed. */
  put(namespace: string, name: string, node: string | undefined): readonly string[]
  nodesOf(namespace: string): Iterable<string>
  /** Sorted. */
  namespacesOf(node: string): readonly string[]
}

/** Numbers of pods, by namespace and node, or by node and namespace. */
type Counts = Map<string, Map<string, number>>

export function namespaceNodes(): NamespaceNodes {
  /** By `namespace/name` of the pod. */
  const nodes = new Map<string, string>()
  const byNamespace: Counts = new Map()
  const byNode: Counts = new Map()
  /** Whether the pair is new or gone. */
  const count = (namespace: string, node: string, by: 1 | -1): boolean => {
    add(byNamespace, namespace, node, by)
    return add(byNode, node, namespace, by)
  }
  return {
    put(namespace, name, node) {
      const key = `${namespace}/${name}`
      const before = nodes.get(key)
      if (before === node) return []
      if (node === undefined) nodes.delete(key)
      else nodes.set(key, node)
      const left = before !== undefined && count(namespace, before, -1) ? [before] : []
      const reached = node !== undefined && count(namespace, node, 1) ? [node] : []
      return [...left, ...reached]
    },
    nodesOf: (namespace) => byNamespace.get(namespace)?.keys() ?? [],
    namespacesOf: (node) => [...(byNode.get(node)?.keys() ?? [])].sort(),
  }
}

/** Whether the inner key is new or gone. */
function add(counts: Counts, outer: string, inner: string, by: 1 | -1): boolean {
  const inners = counts.get(outer) ?? new Map<string, number>()
  const before = inners.get(inner) ?? 0
  if (before + by > 0) inners.set(inner, before + by)
  else inners.delete(inner)
  if (inners.size > 0) counts.set(outer, inners)
  else counts.delete(outer)
  return before === 0 || before + by === 0
}
