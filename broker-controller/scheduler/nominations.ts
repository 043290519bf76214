/** Pods that were promised room on a node while the preempted pods are still leaving it (`status.nominatedNodeName`). */
import type { StoredPod } from '../store/store.ts'

export type KeyedPod = { readonly key: string; readonly pod: StoredPod }

export interface Nominations {
  /** `nodeName` '': the pod is nominated to no node. */
  nominate(key: string, pod: StoredPod, nodeName: string): void
  nominatedTo(nodeName: string): readonly KeyedPod[]
  nominationOf(key: string): string | undefined
}

const noPods: readonly KeyedPod[] = []

export function nominations(): Nominations {
  const nodeOf = new Map<string, string>()
  const podsOn = new Map<string, Map<string, StoredPod>>()
  return {
    nominate(key, pod, nodeName) {
      const before = nodeOf.get(key)
      if (before !== undefined) podsOn.get(before)?.delete(key)
      if (before !== undefined && podsOn.get(before)?.size === 0) podsOn.delete(before)
      nodeOf.delete(key)
      if (nodeName === '') return
      nodeOf.set(key, nodeName)
      podsOn.set(nodeName, (podsOn.get(nodeName) ?? new Map()).set(key, pod))
    },
    nominatedTo(nodeName) {
      const here = podsOn.get(nodeName)
      return here === undefined ? noPods : [...here].map(([key, pod]) => ({ key, pod }))
    },
    nominationOf: (key) => nodeOf.get(key),
  }
}
