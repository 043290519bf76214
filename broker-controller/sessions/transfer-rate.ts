/** So many bytes in a second. */
import type { Clock } from '../../daemon/clock.ts'

/** The rate holds over this time. */
const sliceMs = 250

/** The function resolves when these bytes may be followed by others. Rejects when `signal` has aborted. */
export function transferRate(
  bytesPerSecond: number,
  clock: Pick<Clock, 'monotonicMs' | 'sleep'>,
  signal: AbortSignal,
): (bytes: number) => Promise<void> {
  let [sliceEndMs, inSlice] = [clock.monotonicMs() + sliceMs, 0]
  return async (bytes) => {
    inSlice += bytes
    if (inSlice < (bytesPerSecond * sliceMs) / 1000) return
    const waitMs = sliceEndMs - clock.monotonicMs()
    if (waitMs > 0) await clock.sleep(waitMs, signal)
    signal.throwIfAborted()
    ;[sliceEndMs, inSlice] = [clock.monotonicMs() + sliceMs, 0]
  }
}
