/** Watches the loops: one that sleeps is alive, one that has been busy for too long hangs. */
import type { Clock } from '../clock.ts'

export interface LoopWatch {
  /** The clock for the sleeps of this loop. Its sleeps show that the loop is alive. */
  clockFor(loop: string): Clock
  /** The loops that have been busy for too long. */
  stuck(): readonly string[]
}

export function loopWatch(clock: Clock, limitMs: number): LoopWatch {
  const busySinceMs = new Map<string, number>()
  return {
    clockFor: (loop) => ({
      monotonicMs: () => clock.monotonicMs(),
      wallMs: () => clock.wallMs(),
      async sleep(ms, signal) {
        busySinceMs.delete(loop)
        await clock.sleep(ms, signal)
        busySinceMs.set(loop, clock.monotonicMs())
      },
    }),
    stuck: () => [...busySinceMs].filter(([, since]) => clock.monotonicMs() - since > limitMs).map(([loop]) => loop),
  }
}
