/**
 * Which store this node takes orders from that delete data: the one whose orders it followed before, by its identity. Another one must be there for
 * ten minutes, because it may be a backup that somebody tries out. An earlier one is never obeyed again. No date decides. Pure.
 */

export type StoreTrust = {
  /** The stores that were obeyed, the present one last. They are saved. */
  readonly known: readonly string[]
  /** Another one is there since then, by the monotonic clock. */
  readonly other?: { readonly store: string; readonly sinceMs: number }
}

const strangeMs = 10 * 60_000
const mostKnown = 32

/**
 * The controller has announced this store, or is still there. `isEmpty`: no volume was ever made on this machine, so that the first store has
 * nothing to delete.
 */
export function trustAfter(
  trust: StoreTrust,
  { store, nowMs, isEmpty }: { readonly store: string; readonly nowMs: number; readonly isEmpty: boolean },
): StoreTrust {
  const { known, other } = trust
  if (store === known.at(-1)) return other === undefined ? trust : { known }
  if (known.includes(store)) return other?.store === store ? trust : { known, other: { store, sinceMs: nowMs } }
  if (known.length === 0 && isEmpty) return { known: [store] }
  if (other?.store !== store) return { known, other: { store, sinceMs: nowMs } }
  if (nowMs - other.sinceMs < strangeMs) return trust
  return { known: [...known, store].slice(-mostKnown) }
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
  if (other === undefined || known.includes(other.store)) return undefined
  return Math.max(0, other.sinceMs + strangeMs - nowMs)
}
