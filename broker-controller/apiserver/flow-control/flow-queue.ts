/** Requests of a level that wait for their turn: those of a flow in the order in which they came, for a bounded time. */
import type { Clock } from '../../../daemon/clock.ts'
import { isWithinFairShare } from '../../../daemon/limits/fair-share.ts'
import type { Flow, LevelLimits } from './flow-levels.ts'

/** Why a request is not admitted now, and when another attempt may succeed. */
export type FlowRefusal = { readonly reason: 'rate' | 'concurrency' | 'watches'; readonly waitMs: number }
export type Attempt<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & FlowRefusal)

export interface FlowQueue {
  /**
   * What `attempt` gives once it is this request's turn. The refusal where its flow has too many that wait, where the level has and its
   * owner has not fewer than others, where it has waited too long, or when `signal` aborts. A place for a stream is not waited for:
   * streams last.
   */
  inTurn<T>(flow: Pick<Flow, 'key' | 'owner'>, attempt: () => Attempt<T>, signal: AbortSignal): Promise<Attempt<T>>
  /** A seat is free again. */
  freed(): void
}

type Waiter = { wake: AbortController }
type QueueLimits = NonNullable<LevelLimits['queue']>

export function flowQueue(
  { longestMs, perFlow, inLevel }: QueueLimits,
  clock: Pick<Clock, 'monotonicMs' | 'sleep'>,
): FlowQueue {
  const lines = new Map<string, Waiter[]>()
  /** How many requests of each owner wait. */
  const byOwner = new Map<string, number>()
  let waiting = 0

  const count = (owner: string, change: 1 | -1) => {
    waiting += change
    const left = (byOwner.get(owner) ?? 0) + change
    if (left > 0) byOwner.set(owner, left)
    else byOwner.delete(owner)
  }
  /** A queue that is full takes more of owners with few: the accounts of one owner cannot keep those of others from waiting. */
  const hasRoom = (owner: string) => {
    if (waiting < inLevel) return true
    const others = [...byOwner].filter(([other]) => other !== owner).map(([, some]) => some)
    return isWithinFairShare((byOwner.get(owner) ?? 0) + 1, others, inLevel)
  }
  const isFull = (line: readonly Waiter[], owner: string) => line.length >= perFlow || !hasRoom(owner)
  const lineOf = (key: string): Waiter[] => lines.get(key) ?? []
  const pause = async (waiter: Waiter, ms: number, signal: AbortSignal) => {
    await clock.sleep(ms, AbortSignal.any([signal, waiter.wake.signal]))
    waiter.wake = new AbortController()
  }
  const leave = (key: string, line: Waiter[], waiter: Waiter) => {
    line.splice(line.indexOf(waiter), 1)
    if (line.length === 0) lines.delete(key)
    line[0]?.wake.abort(woken)
  }

  return {
    async inTurn({ key, owner = key }, attempt, signal) {
      const line = lineOf(key)
      let last = line.length === 0 ? attempt() : behindOthers
      if (last.ok || last.reason === 'watches' || isFull(line, owner)) return last
      const waiter: Waiter = { wake: new AbortController() }
      lines.set(key, line)
      line.push(waiter)
      count(owner, 1)
      const endMs = clock.monotonicMs() + longestMs
      try {
        while (!last.ok && !signal.aborted && clock.monotonicMs() < endMs) {
          const leftMs = endMs - clock.monotonicMs()
          await pause(waiter, pauseOf(line[0] === waiter, leftMs, last.waitMs), signal)
          if (!signal.aborted && line[0] === waiter) last = attempt()
        }
        return last
      } finally {
        count(owner, -1)
        leave(key, line, waiter)
      }
    },
    freed() {
      for (const [first] of lines.values()) first?.wake.abort(woken)
    },
  }
}

const behindOthers = { ok: false, reason: 'rate', waitMs: 1000 } as const
/** Without a reason each abort would make an exception with its stack. */
const woken = 'woken'

/** Only the first one tries before the end: the others are woken when it leaves. */
function pauseOf(isFirst: boolean, leftMs: number, waitMs: number): number {
  return isFirst ? Math.min(leftMs, waitMs) : leftMs
}
