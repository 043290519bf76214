/**
 * Finds the operation that blocked the event loop, and for how long. The dispatcher of work names it with `beginOperation`; a timer
 * that fires late shows that nothing else could run, and the operation that took longest since it was set is the cause.
 * There is one event loop in a process, so the watch of it is the one thing here that belongs to the process: naming an
 * operation needs no reference to it, and does nothing without it.
 */

export type OperationKind = 'request' | 'message' | 'reconcile' | 'watch'

export type Block = {
  readonly kind: OperationKind | 'other'
  /** The request's method and path, the kind of message, the controller's or resource's name. */
  readonly operation: string
  /** How long nothing else ran. */
  readonly blockedMs: number
  /** Operations that began meanwhile, this one included. */
  readonly operations: number
}

export type EventLoopNeeds = {
  readonly onBlock: (block: Block) => void
  readonly limitMs?: number
  readonly nowMs?: () => number
  /** Calls back after this long, as `setTimeout` of Node.js; must not keep the process alive. */
  readonly setTimer?: (callback: () => void, ms: number) => unknown
}

/** Twice a request's goal of 100 ms, and what a person notices. */
export const defaultBlockLimitMs = 250
const timerMs = 100

let current: ((kind: OperationKind, operation: string) => void) | undefined

/** From here on the event loop works on this, until the next operation begins or it has nothing to do. Costs under 1 µs. */
export function beginOperation(kind: OperationKind, operation: string): void {
  current?.(kind, operation)
}

/** Watches this process's event loop until the function it gives is called. A process at rest is not woken up for it. */
export function watchEventLoop({
  onBlock,
  limitMs = defaultBlockLimitMs,
  nowMs = () => performance.now(),
  setTimer = (callback, ms) => setTimeout(callback, ms).unref(),
}: EventLoopNeeds): () => void {
  let running: { readonly kind: OperationKind; readonly operation: string; readonly sinceMs: number } | undefined
  let longest: { readonly kind: OperationKind; readonly operation: string; readonly tookMs: number } | undefined
  let begun = 0
  let dueMs: number | undefined

  const end = (now: number) => {
    if (running === undefined) return
    const tookMs = now - running.sinceMs
    if (longest === undefined || tookMs > longest.tookMs) longest = { ...running, tookMs }
  }

  const arm = (now: number) => {
    dueMs = now + timerMs
    setTimer(fire, timerMs)
  }

  const fire = () => {
    if (dueMs === undefined) return
    const now = nowMs()
    end(now)
    const blockedMs = now - dueMs
    if (blockedMs > limitMs) {
      const { kind = 'other', operation = '' } = longest ?? {}
      onBlock({ kind, operation, blockedMs: Math.round(blockedMs), operations: begun })
    }
    const isBusy = begun > 0
    running = undefined
    longest = undefined
    begun = 0
    dueMs = undefined
    if (isBusy && current === begin) arm(now)
  }

  const begin = (kind: OperationKind, operation: string) => {
    const now = nowMs()
    end(now)
    running = { kind, operation, sinceMs: now }
    begun += 1
    if (dueMs === undefined) arm(now)
  }
  current = begin
  return () => {
    if (current === begin) current = undefined
    dueMs = undefined
  }
}
