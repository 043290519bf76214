/** Requests of a level that wait for their turn: those of a flow in the order in which they came, for a bounded time. */
import type { Clock } from '../../../daemon/clock.ts'
import type { LevelLimits } from './flow-levels.ts'

/** Why a request is not admitted now, and when another attempt may succeed. */
export type FlowRefusal = { readonly reason: 'rate' | 'concurrency' | 'watches'; readonly waitMs: number }
export type Attempt<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & FlowRefusal)

export interface FlowQueue {
  /**
   * What `attempt` gives once it is this request's turn. The refusal where its flow or the level has too many that wait, where it has
   * waited too long, or when `signal` aborts. A place for a stream is not waited for: streams last.
   */
  inTurn<T>(flow: string, attempt: () => Attempt<T>, signal: AbortSignal): Promise<Attempt<T>>
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
  let waiting = 0

  const leave = (flow: string, line: Waiter[], waiter: Waiter) => {
    waiting -= 1
    line.splice(line.indexOf(waiter), 1)
    if (line.length === 0) lines.delete(flow)
    line[0]?.wake.abort(woken)
  }

  return {
    async inTurn(flow, attempt, signal) {
      const line = lines.get(flow) ?? []
      let last = line.length === 0 ? attempt() : behindOthers
      if (last.ok || last.reason === 'watches' || line.length >= perFlow || waiting >= inLevel) return last
      const waiter: Waiter = { wake: new AbortController() }
      lines.set(flow, line)
      line.push(waiter)
      waiting += 1
      const endMs = clock.monotonicMs() + longestMs
      try {
        while (!last.ok && !signal.aborted && clock.monotonicMs() < endMs) {
          const leftMs = endMs - clock.monotonicMs()
          const pauseMs = line[0] === waiter ? Math.min(leftMs, last.waitMs) : leftMs
          await clock.sleep(pauseMs, AbortSignal.any([signal, waiter.wake.signal]))
          waiter.wake = new AbortController()
          if (line[0] === waiter && !signal.aborted) last = attempt()
        }
        return last
      } finally {
        leave(flow, line, waiter)
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
