/** How much more a store has after a change, as far as that decides whether a store with little room accepts it. */
import type { DraftChange } from '../changes.ts'

/**
 * `none`: a deletion, the mark of one, or an object that does not grow: always accepted, because it frees space or leads to that.
 * `small`: a status, or a few bytes such as the node of a pod: what running pods need. `large`: a new object, or one that grows.
 */
export type Growth = 'none' | 'small' | 'large'

/** A field that a controller sets: the node of a pod, a condition, a finalizer. */
const smallBytes = 1024
/** deletionTimestamp, its grace period, and the entry in managedFields. It is set once in the life of an object. */
const markBytes = 4096

/** Makes the JSON of both objects: for a store that is short of room. */
export function growthOf({ type, object, previous }: DraftChange, part: 'whole' | 'status'): Growth {
  if (type === 'DELETED') return 'none'
  if (previous === undefined) return 'large'
  const bytes = JSON.stringify(object).length - JSON.stringify(previous).length
  const isMarked = object.metadata.deletionTimestamp !== undefined && previous.metadata.deletionTimestamp === undefined
  if (bytes <= (isMarked ? markBytes : 0)) return 'none'
  return part === 'status' || bytes <= smallBytes ? 'small' : 'large'
}
