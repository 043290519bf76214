/** The life of one process: it may end at any moment, and nothing that it began goes on then. */
import type { Clock } from '../../daemon/clock.ts'
import type { SimulatedTime } from './simulated-time.ts'
import { worldBegan } from './simulated-time.ts'

/** `killed`: the kernel lives on, and closes its connections. `power`: nothing of the machine answers any more. */
export type LifeEnd = 'killed' | 'power'

export interface ProgramLife {
  readonly isAlive: boolean
  /** Sleeps of a process that has ended never wake. */
  readonly clock: Clock
  /** As `work`; once the process has ended, its promise never settles, and work is not begun. */
  within<T>(work: () => Promise<T>): Promise<T>
  onEnd(act: (how: LifeEnd) => void): void
  end(how: LifeEnd): void
}

export function beginLife(time: SimulatedTime, random: () => number): ProgramLife {
  let isAlive = true
  const beganMs = time.nowMs
  const listeners = new Set<(how: LifeEnd) => void>()
  const sleeping = new Set<() => void>()

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
      const cancel = time.after(ms, wake)
      sleeping.add(cancel)
      signal?.addEventListener('abort', wake, { once: true })
    })

  return {
    get isAlive() {
      return isAlive
    },
    clock: {
      // A monotonic clock begins anywhere: here with its process.
      monotonicMs: () => time.nowMs - beganMs,
      wallMs: () => worldBegan + time.nowMs,
      sleep,
      random,
    },
    within: (work) =>
      new Promise((resolve, reject) => {
        if (!isAlive) return
        work().then(
          (value) => isAlive && resolve(value),
          (error: unknown) => isAlive && reject(error),
        )
      }),
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
