/** Which pod takes room on which node. Pods of a node that is not there yet wait for it. */
import type { StoredPod } from '../store/store.ts'
import type { Crowds } from './crowds.ts'
import type { NodeLedger } from './node-usage.ts'

export type PodPlacement = { readonly pod: StoredPod; readonly nodeName: string }

export interface Placements {
  /** Counts the pod on the node, without recording the placement. */
  enter(key: string, placement: PodPlacement): void
  leave(key: string, placement: PodPlacement): void
  /** The pod takes its share of that node, and of no other. */
  place(key: string, pod: StoredPod, nodeName: string): void
  remove(key: string): void
  /** Makes a change to a node while its pods are taken off it. */
  moved(nodeName: string, change: () => void): void
}

/** `onPlaced` is called before a pod is placed. */
export function placements(
  nodes: ReadonlyMap<string, NodeLedger>,
  neighbours: Pick<Crowds, 'enter' | 'leave'>,
  onPlaced: (key: string, pod: StoredPod) => void,
): Placements {
  const placed = new Map<string, PodPlacement>()
  /** Pods bound to nodes that were not delivered yet. */
  const waiting = new Map<string, Set<string>>()

  const enter = (key: string, { pod, nodeName }: PodPlacement) => {
    const ledger = nodes.get(nodeName)
    if (ledger === undefined) return void waiting.set(nodeName, (waiting.get(nodeName) ?? new Set()).add(key))
    ledger.add(key, pod)
    neighbours.enter(pod, nodeName)
  }

  const leave = (key: string, { pod, nodeName }: PodPlacement) => {
    const ledger = nodes.get(nodeName)
    if (ledger === undefined) return void waiting.get(nodeName)?.delete(key)
    ledger.remove(key)
    neighbours.leave(pod, nodeName)
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

  return { enter, leave, place, remove, moved }
}
