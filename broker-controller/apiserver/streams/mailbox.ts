/** Between one that brings and one that takes: who brings waits until it is taken. */
export interface Mailbox<T> {
  /** Resolves when the item is taken, or the mailbox is closed. */
  put(item: T): Promise<void>
  /** The next item; undefined: the mailbox is closed, and empty. */
  take(): Promise<T | undefined>
  /** What was put before is still taken. */
  close(): void
}

export function mailbox<T>(): Mailbox<T> {
  const items: T[] = []
  let isClosed = false
  let waiting: (() => void)[] = []
  const changed = () => {
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }
  const change = () => new Promise<void>((resolve) => void waiting.push(resolve))
  return {
    async put(item) {
      if (isClosed) return
      items.push(item)
      changed()
      while (items.includes(item) && !isClosed) await change()
    },
    async take() {
      while (items.length === 0 && !isClosed) await change()
      const item = items.shift()
      changed()
      return item
    },
    close() {
      isClosed = true
      changed()
    },
  }
}
