/** Notices when the date jumps: a Pi without a clock of its own gets the time from a server, maybe years later. */
import type { Clock } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'

const checkMs = 10_000
/** A server that corrects the date slowly changes it by less in this time. */
const jumpMs = 1000

/** Loop: calls `onJump` when date and time that has passed differ, also after the machine was suspended; within 10 s. */
export function watchClock(clock: Clock, onJump: () => void): Loop {
  return {
    name: 'clock-jumps',
    async run(signal) {
      let difference = clock.wallMs() - clock.monotonicMs()
      while (!signal.aborted) {
        await clock.sleep(checkMs, signal)
        const now = clock.wallMs() - clock.monotonicMs()
        if (!signal.aborted && Math.abs(now - difference) > jumpMs) onJump()
        difference = now
      }
    },
  }
}
