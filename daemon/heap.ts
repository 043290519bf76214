/** A pile that always gives its first item, by an order of the caller's, without ever being sorted whole. */

export interface Heap<Item> {
  readonly size: number
  push(item: Item): void
  first(): Item | undefined
  /** Takes the first item off. */
  pop(): Item | undefined
}

/** A binary heap; `isBefore` must be a strict order. Push and pop cost the logarithm of the size. */
export function heap<Item>(isBefore: (a: Item, b: Item) => boolean): Heap<Item> {
  const items: Item[] = []

  const rise = (from: number) => {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!swapIfBefore(at, parent)) return
      at = parent
    }
  }

  const sink = () => {
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      const first = precedes(left + 1, left) ? left + 1 : left
      if (!swapIfBefore(first, at)) return
      at = first
    }
  }

  const precedes = (a: number, b: number) => {
    const [left, right] = [items[a], items[b]]
    return left !== undefined && right !== undefined && isBefore(left, right)
  }

  const swapIfBefore = (a: number, b: number) => {
    const [left, right] = [items[a], items[b]]
    if (left === undefined || right === undefined || !isBefore(left, right)) return false
    items[a] = right
    items[b] = left
    return true
  }

  return {
    get size() {
      return items.length
    },
    push(item) {
      items.push(item)
      rise(items.length - 1)
    },
    first: () => items[0],
    pop() {
      const first = items[0]
      const last = items.pop()
      if (last !== undefined && items.length > 0) {
        items[0] = last
        sink()
      }
      return first
    },
  }
}
