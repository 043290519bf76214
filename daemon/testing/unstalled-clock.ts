import { type Clock, systemClock } from '../clock.ts'

/** Most time that passes between two turns, however long the process got none. */
const stepMs = 100

/**
 * The system's clock without the time in which this process got no turn, as on a machine that stands still for some seconds: what arrived
 * meanwhile is read before a deadline has passed.
 */
export function unstalledClock(): Clock {
  let passedMs = 0
  let lookedMs = performance.now()
  const look = () => {
    const nowMs = performance.now()
    passedMs += Math.min(nowMs - lookedMs, stepMs)
    lookedMs = nowMs
    return passedMs
  }
  setInterval(look, stepMs / 4).unref()
  return {
    ...systemClock,
    monotonicMs: look,
    async sleep(ms, signal) {
      const untilMs = look() + ms
      for (let leftMs = ms; leftMs > 0 && !signal?.aborted; leftMs = untilMs - look()) {
        await systemClock.sleep(Math.min(leftMs, stepMs), signal)
      }
    },
  }
}
