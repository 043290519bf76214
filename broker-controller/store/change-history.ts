/** The latest changes of one kind: one list that all watches read, each at its own place. */
import { expired } from '../../api/api-error.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Change } from './changes.ts'
import { heapSizeOf } from './heap-size.ts'
import type { ChangeCursor } from './store.ts'

export interface ChangeHistory {
  /** About the bytes that the kept changes take on the heap; of objects that share parts the parts are counted for each. */
  readonly bytes: number
  add(change: Change): void
  /** Drops the older half of what is too old to be of use. */
  forgetOld(nowMs: number): void
  /** Drops the older half, but never the latest change. False: there is nothing to drop. */
  forgetHalf(): boolean
  /** Drops all, and ends every cursor with Expired: changes up to `version` may be missing. */
  forgetAll(version: number): void
  /** The changes after `from`. `latest`: no client can have a later version. */
  cursor(from: number, latest: number): ChangeCursor<Change>
  /** Ends every watch. */
  close(): void
}

type Entry = { readonly change: Change; readonly madeMs: number; readonly bytes: number }

/** As Kubernetes compacts: a client that was away for longer lists again. Otherwise a small fleet would keep the statuses of weeks. */
const rememberedMs = 5 * 60_000
/** Changes that are kept of each kind however old they are. */
const leastKept = 100

/** Makes the histories together no larger than `limit`, at the cost of the largest. */
export function forgetBeyond(limit: number, histories: readonly ChangeHistory[]): void {
  while (histories.reduce((sum, { bytes }) => sum + bytes, 0) > limit) {
    const largest = histories.reduce((a, b) => (b.bytes > a.bytes ? b : a))
    if (!largest.forgetHalf()) return
  }
}

/** At least `length` changes of the last minutes, at most twice as many. `startVersion`: no change up to it is kept. */
export function changeHistory(length: number, startVersion: number, clock: Pick<Clock, 'monotonicMs'>): ChangeHistory {
  const entries: Entry[] = []
  const waiting = new Set<() => void>()
  let bytes = 0
  /** How many changes were dropped before `entries[0]`, and the version of the last of them. */
  let dropped = 0
  let forgotten = startVersion
  let closed = false

  const wake = () => {
    const resumed = [...waiting]
    waiting.clear()
    for (const resume of resumed) resume()
  }
  /** The place of the first change after `version`. */
  const placeAfter = (version: number) => {
    let low = 0
    let high = entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((entries[middle]?.change.version ?? 0) > version) high = middle
      else low = middle + 1
    }
    return dropped + low
  }

  const read = (from: number, isRemembered: boolean, place: number): ChangeCursor<Change> => {
    let version = from
    let next = place
    return {
      get ended() {
        return closed
      },
      next() {
        if (!isRemembered) throw expired(from, forgotten)
        if (closed || next === dropped + entries.length) return undefined
        const change = entries[next - dropped]?.change
        if (change === undefined) throw expired(version, forgotten)
        next += 1
        version = change.version
        return change
      },
      onReady(listener) {
        waiting.add(listener)
        return () => void waiting.delete(listener)
      },
    }
  }

  const forget = (count: number) => {
    const old = entries.splice(0, count)
    dropped += old.length
    forgotten = old.at(-1)?.change.version ?? forgotten
    for (const entry of old) bytes -= entry.bytes
  }

  /** Many at a time: removing one moves all others each time. */
  const forgetOld = (nowMs: number) => {
    const half = entries.length >>> 1
    if (entries.length > 2 * length) forget(entries.length - length)
    else if (half > leastKept && nowMs - (entries[half]?.madeMs ?? nowMs) > rememberedMs) forget(half)
  }

  return {
    get bytes() {
      return bytes
    },
    add(change) {
      const madeMs = clock.monotonicMs()
      const size = heapSizeOf(change.object)
      entries.push({ change, madeMs, bytes: size })
      bytes += size
      forgetOld(madeMs)
      wake()
    },
    forgetOld,
    forgetHalf() {
      if (entries.length < 2) return false
      forget(entries.length >>> 1)
      return true
    },
    forgetAll(version) {
      forget(entries.length)
      // No cursor is at this place.
      dropped += 1
      forgotten = version
      wake()
    },
    cursor: (from, latest) => read(from, from >= forgotten && from <= latest, placeAfter(from)),
    close() {
      closed = true
      wake()
    },
  }
}
