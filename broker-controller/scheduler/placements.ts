/** The assignment of pods to nodes. Pods of a node that is not in the cache yet are counted when it is added. */
import type { StoredPod } from '../store/store.ts'
import type { NodeInfo } from './node-usage.ts'

export type PodPlacement = { readonly pod: StoredPod; readonly nodeName: string }

export interface Placements {
  /** Counts the pod on the node, without recording the placement. */
  enter(key: string, placement: PodPlacement): void
  leave(key: string, placement: PodPlacement): void
  /** Assigns the pod's requests to that node, and to no other. */
  place(key: string, pod: StoredPod, nodeName: string): void
  remove(key: string): void
  nodeOf(key: string): string | undefined
  /** Makes a change to a node while its pods are taken off it. */
  moved(nodeName: string, change: () => void): void
}

/** What counts pods beside the nodes that they are on. */
export interface PodCounters {
  enter(pod: StoredPod, nodeName: string): void
  leave(pod: StoredPod, nodeName: string): void
}

/** `onPlaced` is called before a pod is placed. */
export function placements(
  nodes: ReadonlyMap<string, NodeInfo>,
  counters: PodCounters,
  onPlaced: (key: string, pod: StoredPod) => void,
): Placements {
  const placed = new Map<string, PodPlacement>()
  /** Pods bound to nodes that were not delivered yet. */
  const waiting = new Map<string, Set<string>>()

  const enter = (key: string, { pod, nodeName }: PodPlacement) => {
    const info = nodes.get(nodeName)
    if (info === undefined) return void waiting.set(nodeName, (waiting.get(nodeName) ?? new Set()).add(key))
    info.add(key, pod)
    counters.enter(pod, nodeName)
  }

  const leave = (key: string, { pod, nodeName }: PodPlacement) => {
    const info = nodes.get(nodeName)
    if (info === undefined) return void waiting.get(nodeName)?.delete(key)
    info.remove(key)
    counters.leave(pod, nodeName)
  }

  const remove = (key: string) => {
    const before = placed.get(key)
    if (before === undefined) return
    placed.delete(key)
    leave(key, before)
  }

  const place = (key: string, pod: StoredPod, nodeName: string) => {
    remove(key)
    onPlaced(key, pod)
    placed.set(key, { pod, nodeName })
    enter(key, { pod, nodeName })
  }

  /** Pods of a node whose labels change, or that comes or goes, are taken off before and put on after. */
  const moved = (name: string, change: () => void) => {
    const here = [...(nodes.get(name)?.pods.keys() ?? waiting.get(name) ?? [])]
    const kept = here.flatMap((key) => {
      const what = placed.get(key)
      return what === undefined ? [] : [[key, what] as const]
    })
    for (const [key, what] of kept) leave(key, what)
    waiting.delete(name)
    change()
    for (const [key, what] of kept) enter(key, what)
  }

  return { enter, leave, place, remove, moved, nodeOf: (key) => placed.get(key)?.nodeName }
}
