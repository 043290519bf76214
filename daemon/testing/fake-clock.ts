/** A clock that the test moves. */
import type { Clock } from '../clock.ts'

export interface FakeClock extends Clock {
  /** Lets `ms` pass: sleepers wake in the order they come due, and what they do is done before the next one wakes. */
  advance(ms: number): Promise<void>
  /** Time passes while the machine is suspended: who came due wakes late, at the next `advance`. */
  suspend(ms: number): void
  /** Lets everything that is ready happen, without time passing. */
  settle(): Promise<void>
  /** Moves the date, not the time: a Pi that gets the time from a server. */
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

const turns = 5
/** A read that waits for ever, as one of a pipe, does not affect the order. */
const longestWaitMs = 2_000
/** Time that one turn counts at most: after a stall of the whole machine, files may need as long as before it. */
const longestTurnMs = 5

/** In real time. Work that finds its turn that long continues in the next one (`limits/turn-limit.ts`), as it does where the machine is slow. */
const longTurnMs = 10

/**
 * Turns of the event loop until nothing is ready any more: chains of promises have run out, and the files they were reading
 * or writing are done, however slow the disk. A long turn is not the last.
 */
async function settle(): Promise<void> {
  let waitedMs = 0
  let turnedMs = performance.now()
  for (let quiet = 0; quiet < turns; ) {
    await new Promise((resolve) => setImmediate(resolve))
    const nowMs = performance.now()
    const turnMs = nowMs - turnedMs
    waitedMs += Math.min(turnMs, longestTurnMs)
    turnedMs = nowMs
    const isBusy = turnMs >= longTurnMs || (filesAreBusy() && waitedMs < longestWaitMs)
    quiet = isBusy ? 0 : quiet + 1
  }
}

/** Node's names for what its thread pool does with files; `CloseReq` closes one. */
const fileWork = new Set(['FSReqPromise', 'FSReqCallback', 'CloseReq'])

function filesAreBusy(): boolean {
  return process.getActiveResourcesInfo().some((kind) => fileWork.has(kind))
}
