/** Time of a simulated world: what is planned happens in order, and all that follows from it is done before the next thing. */
import { heap } from '../../daemon/heap.ts'

export interface SimulatedTime {
  /** Milliseconds since the beginning of the world. */
  readonly nowMs: number
  /** The date at which it began. */
  readonly beganMs: number
  /** Plans `act`. Returns the function that cancels it. */
  after(ms: number, act: () => void): () => void
  /** Resolves after `ms`. */
  passed(ms: number): Promise<void>
  /** Lets everything happen that is planned until then, and ends early when `isOver` is true. */
  runUntil(ms: number, isOver?: () => boolean): Promise<void>
}

const usualBeginning = Date.parse('2026-01-01T00:00:00Z')

/**
 * What one planned thing causes takes some turns of the event loop: the store writes in a turn of its own, and watches are resumed in
 * another. Work that needs more of them goes on while the next things happen, in the same order each time.
 */
const turns = 4

type Planned = { readonly dueMs: number; readonly order: number; act: (() => void) | undefined }

export function simulatedTime(beganMs = usualBeginning): SimulatedTime {
  let nowMs = 0
  let order = 0
  const plan = heap<Planned>((a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order))

  const after = (ms: number, act: () => void) => {
    // Whole milliseconds: a wait for the rest of a fraction would be over before the time that it waits for.
    const planned: Planned = { dueMs: nowMs + Math.ceil(Math.max(0, ms)), order: order++, act }
    plan.push(planned)
    return () => {
      planned.act = undefined
    }
  }

  return {
    get nowMs() {
      return nowMs
    },
    beganMs,
    after,
    passed: (ms) => new Promise((resolve) => void after(ms, resolve)),
    async runUntil(ms, isOver = () => false) {
      await settle()
      for (let next = plan.first(); next !== undefined && next.dueMs <= ms; next = plan.first()) {
        plan.pop()
        if (next.act === undefined) continue
        nowMs = next.dueMs
        next.act()
        await settle()
        if (isOver()) return
      }
      nowMs = Math.max(nowMs, ms)
    },
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}
