/**
 * Which store this node takes orders from that delete data: the one whose orders it followed before, by its identity. Another one must be there for
 * connected for ten minutes, because it may be a backup that somebody tries out. An earlier one is never obeyed again. No date decides. Pure.
 */

export type StoreTrust = {
  /** The stores that were obeyed, the present one last. They are saved. */
  readonly known: readonly string[]
  readonly other?: OtherStore
}

/** A store that is there instead, by the monotonic clock: `seenMs` in earlier connections, and since `sinceMs` if it is connected now. */
type OtherStore = { readonly store: string; readonly seenMs: number; readonly sinceMs?: number }

const strangeMs = 10 * 60_000
const mostKnown = 32

/**
 * The controller has announced this store, or is still there; undefined: none is connected. `isEmpty`: no volume was ever made on this machine, so
 * that the first store has nothing to delete.
 */
export function trustAfter(
  trust: StoreTrust,
  { store, nowMs, isEmpty }: { readonly store: string | undefined; readonly nowMs: number; readonly isEmpty: boolean },
): StoreTrust {
  const { known, other } = trust
  if (store === undefined) return other?.sinceMs === undefined ? trust : { known, other: away(other, nowMs) }
  if (store === known.at(-1)) return other === undefined ? trust : { known }
  if (known.length === 0 && isEmpty) return { known: [store] }
  if (other?.store !== store) return { known, other: { store, seenMs: 0, sinceMs: nowMs } }
  if (other.sinceMs === undefined) return { known, other: { ...other, sinceMs: nowMs } }
  if (known.includes(store) || seenFor(other, nowMs) < strangeMs) return trust
  return { known: [...known, store].slice(-mostKnown) }
}

function away(other: OtherStore, nowMs: number): OtherStore {
  return { store: other.store, seenMs: seenFor(other, nowMs) }
}

function seenFor({ seenMs, sinceMs }: OtherStore, nowMs: number): number {
  return seenMs + (sinceMs === undefined ? 0 : nowMs - sinceMs)
}

/** Why its orders are not followed; undefined: they are. */
export function distrust({ known }: StoreTrust, store: string): string | undefined {
  if (store === known.at(-1)) return undefined
  if (known.includes(store)) {
    return `the order is from an earlier store (${store}). To delete the volume without its data, set its persistentVolumeReclaimPolicy to Retain`
  }
  return `the node follows the orders of another store (${store}) when it has known it for 10 minutes`
}

/** When to ask again because of the time; undefined: not because of it. */
export function trustWaitMs({ known, other }: StoreTrust, nowMs: number): number | undefined {
  if (other?.sinceMs === undefined || known.includes(other.store)) return undefined
  return Math.max(0, strangeMs - seenFor(other, nowMs))
}
