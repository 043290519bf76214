/** Index of pods by the node to which they are bound. The caller passes every change of a pod to `update`. */
import { keyText } from './informer.ts'
import type { StoredPod } from './store.ts'

export interface PodsByNode {
  update(present: StoredPod | undefined, previous: StoredPod | undefined): void
  of(nodeName: string): readonly StoredPod[]
  /** Nodes that pods name, whether they exist or not. */
  nodeNames(): Iterable<string>
}

export function podsByNode(): PodsByNode {
  const byNode = new Map<string, Map<string, StoredPod>>()
  return {
    update(present, previous) {
      const [from, to] = [previous?.spec.nodeName, present?.spec.nodeName]
      if (previous !== undefined && from && from !== to) {
        const pods = byNode.get(from)
        pods?.delete(keyText(previous.metadata))
        if (pods?.size === 0) byNode.delete(from)
      }
      if (present === undefined || !to) return
      const pods = byNode.get(to) ?? new Map<string, StoredPod>()
      byNode.set(to, pods.set(keyText(present.metadata), present))
    },
    of: (nodeName) => [...(byNode.get(nodeName)?.values() ?? [])],
    nodeNames: () => byNode.keys(),
  }
}
