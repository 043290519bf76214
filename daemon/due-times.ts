/** Due times of keys, one for each key. A great number of keys costs nothing while none is due. */
import { heap } from './heap.ts'

export interface DueTimes {
  readonly size: number
  /** The key comes due at `dueMs` instead of any other time. */
  set(key: string, dueMs: number): void
  /** The key comes due at `dueMs`, or earlier if it was to. */
  advance(key: string, dueMs: number): void
  delete(key: string): void
  get(key: string): number | undefined
  /** The key that comes due next. */
  next(): { readonly key: string; readonly dueMs: number } | undefined
  /** When it comes due. */
  nextMs(): number | undefined
  /** Takes the keys that are due, the longest waiting first. */
  take(nowMs: number): string[]
}

type Entry = { readonly key: string; readonly dueMs: number; readonly order: number }

/** Entries that were replaced or deleted are kept up to this many, and as many as there are keys. */
const mostReplaced = 64

export function dueTimes(): DueTimes {
  const present = new Map<string, Entry>()
  let entries = emptyHeap()
  let order = 0

  const add = (entry: Entry) => {
    present.set(entry.key, entry)
    entries.push(entry)
    if (entries.size <= 2 * present.size + mostReplaced) return
    entries = emptyHeap()
    for (const kept of present.values()) entries.push(kept)
  }

  const set = (key: string, dueMs: number) => {
    if (present.get(key)?.dueMs === dueMs) return
    add({ key, dueMs, order: order++ })
  }

  /** The heap keeps entries that were replaced until they come up, or are too many. */
  const first = () => {
    for (let entry = entries.first(); entry !== undefined; entry = entries.first()) {
      if (present.get(entry.key) === entry) return entry
      entries.pop()
    }
    return undefined
  }

  return {
    get size() {
      return present.size
    },
    set,
    advance(key, dueMs) {
      const before = present.get(key)
      if (before === undefined || dueMs < before.dueMs) set(key, dueMs)
    },
    delete: (key) => void present.delete(key),
    get: (key) => present.get(key)?.dueMs,
    next: first,
    nextMs: () => first()?.dueMs,
    take(nowMs) {
      const due: string[] = []
      for (let entry = first(); entry !== undefined && entry.dueMs <= nowMs; entry = first()) {
        entries.pop()
        present.delete(entry.key)
        due.push(entry.key)
      }
      return due
    },
  }
}

function emptyHeap() {
  return heap<Entry>((a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order))
}

/** How long to sleep until `nextMs`; a day when there is no such time. Never less than nothing. */
export function waitMs(nextMs: number | undefined, nowMs: number): number {
  const day = 86_400_000
  return nextMs === undefined ? day : Math.min(day, Math.max(0, nextMs - nowMs))
}
