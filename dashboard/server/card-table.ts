/** The cards of one kind as JSON, computed again for objects that changed, at most once for each round. */

export type KeptCard = {
  readonly key: string
  readonly namespace: string
  /** JSON. */
  readonly text: string
}

/** `text` undefined: the card is gone. */
export type CardChange = { readonly key: string; readonly namespace: string; readonly text: string | undefined }

export interface CardTable {
  /** The object of this key, or what its card is made of, may have changed. */
  mark(key: string): void
  /** Computes at most so many marked cards again: those that differ. */
  take(most: number): Promise<readonly CardChange[]>
  all(): Iterable<KeptCard>
  /** Marked cards. */
  readonly pending: number
}

/**
 * The card now; undefined: the object is gone, or has none. With more objects than room, those of the highest `rank` have cards;
 * without ranks those that came first.
 */
export type CardOf = (
  key: string,
) => Promise<{ readonly namespace: string; readonly card: object; readonly rank?: number } | undefined>

/** Beyond `mostCards` objects have no card, as a page could not show them, until there is room. */
export function cardTable(cardOf: CardOf, mostCards = 20_000): CardTable {
  const kept = new Map<string, KeptCard & { readonly rank: number }>()
  const marked = new Set<string>()
  /** Objects without a card for want of room, with their ranks. */
  const without = new Map<string, number>()

  const remove = (key: string): readonly CardChange[] => {
    const before = kept.get(key)
    kept.delete(key)
    return before === undefined ? [] : [{ key, namespace: before.namespace, text: undefined }]
  }
  /** Makes room for a card of this rank; undefined: there is none. */
  const roomFor = (rank: number | undefined): readonly CardChange[] | undefined => {
    if (kept.size < mostCards) return []
    const lowest = rank === undefined ? undefined : lowestOf(kept.values())
    if (rank === undefined || lowest === undefined || lowest.rank >= rank) return undefined
    without.set(lowest.key, lowest.rank)
    return remove(lowest.key)
  }
  const changesOf = async (key: string): Promise<readonly CardChange[]> => {
    const found = await cardOf(key)
    without.delete(key)
    if (found === undefined) return remove(key)
    const { namespace, rank = 0 } = found
    const text = JSON.stringify(found.card)
    const before = kept.get(key)
    if (before?.text === text) return []
    const room = before === undefined ? roomFor(found.rank) : []
    if (room === undefined) without.set(key, rank)
    else kept.set(key, { key, namespace, text, rank })
    return room === undefined ? [] : [...room, { key, namespace, text }]
  }
  /** After others are gone: the next round gives these cards. */
  const markForRoom = () => {
    const room = mostCards - kept.size
    if (room <= 0 || without.size === 0) return
    for (const [key] of [...without].toSorted(([, a], [, b]) => b - a).slice(0, room)) marked.add(key)
  }

  return {
    mark: (key) => void marked.add(key),
    async take(most) {
      // The last of each card: an object that was created again while others were computed is not gone.
      const changes = new Map<string, CardChange>()
      let left = most
      for (const key of marked) {
        if (left-- === 0) break
        marked.delete(key)
        for (const change of await changesOf(key)) changes.set(change.key, change)
      }
      markForRoom()
      return [...changes.values()]
    },
    all: () => kept.values(),
    get pending() {
      return marked.size
    },
  }
}

function lowestOf<T extends { readonly rank: number }>(cards: Iterable<T>): T | undefined {
  let lowest: T | undefined
  for (const card of cards) if (lowest === undefined || card.rank < lowest.rank) lowest = card
  return lowest
}
