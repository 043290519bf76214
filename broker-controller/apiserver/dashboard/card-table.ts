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

/** The card now; undefined: the object is gone, or has none. */
export type CardOf = (key: string) => Promise<{ readonly namespace: string; readonly card: object } | undefined>

/** Beyond `mostCards` new objects have no card: a page could not show them. */
export function cardTable(cardOf: CardOf, mostCards = 20_000): CardTable {
  const kept = new Map<string, KeptCard>()
  const marked = new Set<string>()

  const changeOf = async (key: string): Promise<CardChange | undefined> => {
    const found = await cardOf(key)
    const before = kept.get(key)
    if (found === undefined) {
      kept.delete(key)
      return before && { key, namespace: before.namespace, text: undefined }
    }
    const { namespace } = found
    const text = JSON.stringify(found.card)
    if (before?.text === text || (before === undefined && kept.size >= mostCards)) return undefined
    kept.set(key, { key, namespace, text })
    return { key, namespace, text }
  }

  return {
    mark: (key) => void marked.add(key),
    async take(most) {
      const changes: CardChange[] = []
      let left = most
      for (const key of marked) {
        if (left-- === 0) break
        marked.delete(key)
        const change = await changeOf(key)
        if (change !== undefined) changes.push(change)
      }
      return changes
    },
    all: () => kept.values(),
    get pending() {
      return marked.size
    },
  }
}
