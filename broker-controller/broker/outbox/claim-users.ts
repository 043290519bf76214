/** Which pods use a claim, so that a change of a claim, a volume or a pod reaches the nodes that it concerns and no others. */
import { isDeepStrictEqual } from 'node:util'
import type { Pod } from '../../../api/pod.ts'
import type { StoredObject } from '../../store/store.ts'
import { claimKeysOf } from './node-claims.ts'

type Changed<Name extends 'pods' | 'nodes'> = StoredObject<Name> | undefined

export interface ClaimUsersIndex {
  /** Takes in a change of a pod. Returns the nodes of pods that may wait for it to end, or no longer: they share a claim for one pod alone. */
  update(present: Changed<'pods'>, previous: Changed<'pods'>): readonly string[]
  /** Claims as `namespace/name`. */
  podsUsing(key: string): readonly Pod[]
  nodesUsing(key: string): readonly string[]
  /** Whether volumes of the node's pods may match its labels now, or no longer. */
  mayMove(node: string, present: Changed<'nodes'>, previous: Changed<'nodes'>): boolean
}

/** The caller passes every change of a pod to `update`. `isForOnePod`: whether the claim may be used by one pod at a time only. */
export function claimUsersIndex(isForOnePod: (key: string) => boolean): ClaimUsersIndex {
  /** By key of the claim, and uid of the pod. */
  const users = new Map<string, Map<string, StoredObject<'pods'>>>()
  /** How many pods of the node use claims. */
  const counts = new Map<string, number>()

  const count = ({ spec }: Pod, by: 1 | -1) => {
    const node = spec.nodeName
    if (!node) return
    const left = (counts.get(node) ?? 0) + by
    if (left > 0) counts.set(node, left)
    else counts.delete(node)
  }

  const leave = (pod: StoredObject<'pods'>, keys: readonly string[]) => {
    if (keys.length > 0) count(pod, -1)
    for (const key of keys) {
      const pods = users.get(key)
      pods?.delete(pod.metadata.uid)
      if (pods?.size === 0) users.delete(key)
    }
  }

  const enter = (pod: StoredObject<'pods'>, keys: readonly string[]) => {
    if (keys.length > 0) count(pod, 1)
    for (const key of keys) {
      const pods = users.get(key) ?? new Map<string, StoredObject<'pods'>>()
      pods.set(pod.metadata.uid, pod)
      users.set(key, pods)
    }
  }

  const nodesUsing = (key: string) => [
    ...new Set([...(users.get(key)?.values() ?? [])].flatMap(({ spec }) => spec.nodeName || [])),
  ]

  return {
    update(present, previous) {
      const before = previous === undefined ? [] : claimKeysOf(previous)
      const after = present === undefined ? [] : claimKeysOf(present)
      if (previous !== undefined) leave(previous, before)
      if (present !== undefined) enter(present, after)
      return [...new Set([...before, ...after])].filter(isForOnePod).flatMap(nodesUsing)
    },
    podsUsing: (key) => [...(users.get(key)?.values() ?? [])],
    nodesUsing,
    mayMove: (node, present, previous) =>
      counts.has(node) && !isDeepStrictEqual(present?.metadata.labels, previous?.metadata.labels),
  }
}
