/** A clock that moves when the test says so. */
import type { Clock } from '../clock.ts'

export interface FakeClock extends Clock {
  /** Lets `ms` pass: sleepers wake in the order they come due, and what they do is done before the next one wakes. */
  advance(ms: number): Promise<void>
  /** Time passes while the machine is suspended: who came due wakes late, at the next `advance`. */
  suspend(ms: number): void
  /** Lets everything that is ready happen, without time passing. */
  settle(): Promise<void>
  /** Moves the date, not the time: a Pi that hears from a time server. */
  setWall(wallMs: number): void
  /** How many wait. */
  readonly sleepers: number
}

const start = Date.parse('2026-01-01T00:00:00Z')

export function fakeClock(wallMs: number = start): FakeClock {
  let monotonicMs = 0
  let wallOffsetMs = wallMs
  let sleepers: readonly Sleeper[] = []

  const advance = async (ms: number) => {
    const until = monotonicMs + ms
    await settle()
    for (let next = firstDue(sleepers, until); next !== undefined; next = firstDue(sleepers, until)) {
      monotonicMs = Math.max(monotonicMs, next.dueMs)
      next.wake()
      await settle()
    }
    monotonicMs = until
    await settle()
  }

  return {
    monotonicMs: () => monotonicMs,
    wallMs: () => wallOffsetMs + monotonicMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        const wake = () => {
          sleepers = sleepers.filter((other) => other !== sleeper)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        const sleeper: Sleeper = { dueMs: monotonicMs + Math.max(0, ms), wake }
        sleepers = [...sleepers, sleeper]
        signal?.addEventListener('abort', wake, { once: true })
      }),
    advance,
    suspend: (ms) => {
      monotonicMs += ms
    },
    settle,
    setWall: (toMs) => {
      wallOffsetMs = toMs - monotonicMs
    },
    get sleepers() {
      return sleepers.length
    },
  }
}

type Sleeper = { readonly dueMs: number; readonly wake: () => void }

/** The earliest of those due; of equals the one that lay down first. */
function firstDue(sleepers: readonly Sleeper[], untilMs: number): Sleeper | undefined {
  return sleepers
    .filter(({ dueMs }) => dueMs <= untilMs)
    .reduce<Sleeper | undefined>(
      (first, next) => (first === undefined || next.dueMs < first.dueMs ? next : first),
      undefined,
    )
}

/** A few turns of the event loop, so that chains of promises, also those through files, have run out. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}
