/** The life of one process: it may end or stand still at any moment, and nothing that it began goes on then. */
import type { Clock } from '../../daemon/clock.ts'
import type { SimulatedTime } from './simulated-time.ts'

/** `killed`: the kernel lives on, and closes its connections. `power`: nothing of the machine answers any more. */
export type LifeEnd = 'killed' | 'power'

export interface ProgramLife {
  readonly isAlive: boolean
  readonly isFrozen: boolean
  /** Sleeps of a process that has ended never wake. */
  readonly clock: Clock
  /** As `work`; once the process has ended, its promise never settles, and work is not begun. */
  within<T>(work: () => Promise<T>): Promise<T>
  /** Calls `act` while the process runs: now, or after `thaw`. */
  whenRunning(act: () => void): void
  /** The process stands still, as after SIGSTOP. */
  freeze(): void
  /** What came due meanwhile happens: timers first, then what has arrived, as in the event loop of Node.js. */
  thaw(): void
  onEnd(act: (how: LifeEnd) => void): void
  end(how: LifeEnd): void
}

export type LifeNeeds = {
  readonly time: SimulatedTime
  readonly random: () => number
  /** How far the date of the machine is off. */
  readonly wallOffsetMs?: () => number
}

export function beginLife({ time, random, wallOffsetMs = () => 0 }: LifeNeeds): ProgramLife {
  let isAlive = true
  let isFrozen = false
  const beganMs = time.nowMs
  const listeners = new Set<(how: LifeEnd) => void>()
  const sleeping = new Set<() => void>()
  const waiting: { timers: (() => void)[]; arrived: (() => void)[] } = { timers: [], arrived: [] }

  const soon = (queue: keyof typeof waiting, act: () => void) => {
    if (!isAlive) return
    if (isFrozen) waiting[queue].push(act)
    else act()
  }
  const take = (queue: keyof typeof waiting) => {
    for (const act of waiting[queue].splice(0)) soon(queue, act)
  }
  const whenRunning = (act: () => void) => soon('arrived', act)

  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      if (!isAlive) return
      if (signal?.aborted) return resolve()
      const wake = () => {
        cancel()
        sleeping.delete(cancel)
        signal?.removeEventListener('abort', wake)
        if (isAlive) resolve()
      }
      const cancel = time.after(ms, () => soon('timers', wake))
      sleeping.add(cancel)
      signal?.addEventListener('abort', wake, { once: true })
    })

  return {
    get isAlive() {
      return isAlive
    },
    get isFrozen() {
      return isFrozen
    },
    clock: {
      // A monotonic clock begins anywhere: here with its process.
      monotonicMs: () => time.nowMs - beganMs,
      wallMs: () => time.beganMs + time.nowMs + wallOffsetMs(),
      sleep,
      random,
    },
    whenRunning,
    within: (work) =>
      new Promise((resolve, reject) => {
        if (!isAlive) return
        work().then(
          (value) => whenRunning(() => resolve(value)),
          (error: unknown) => whenRunning(() => reject(error)),
        )
      }),
    freeze() {
      isFrozen = true
    },
    thaw() {
      isFrozen = false
      take('timers')
      time.after(0, () => take('arrived'))
    },
    onEnd: (act) => void listeners.add(act),
    end(how) {
      if (!isAlive) return
      isAlive = false
      for (const cancel of sleeping) cancel()
      sleeping.clear()
      for (const act of listeners) act(how)
    },
  }
}
