/** What date is it? This machine's clock, a time server's, the controller's, what was known before, and whom to believe. */
import { type Clock, sinceBootMs } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { knownTimePath, timeFile } from '../adapters/disk/time-file.ts'
import type { MachineSensors } from '../adapters/kernel/machine-sensors.ts'
import { type ControllerTime, controllerTime, likelyDate } from '../health/clock.ts'
import { type KnownTimeKeeper, openKnownTime } from '../node/certificate/known-time.ts'

export type DateParts = {
  readonly dataDir: string
  /** Our own, PEM: it was made in the past. */
  readonly certificate: string
  readonly sensors: MachineSensors
  readonly clock: Clock
  readonly log: Log
}

export type MachineDate = {
  readonly knownTime: KnownTimeKeeper
  readonly theirTime: ControllerTime
  /** Undefined where nobody can tell. */
  readonly nowMs: () => number | undefined
  /** Where nobody can tell: the clock, but never before what is known. */
  readonly guessedMs: () => number
}

export async function assembleDate({ dataDir, certificate, sensors, clock, log }: DateParts): Promise<MachineDate> {
  const knownTime = await openKnownTime({
    file: timeFile(knownTimePath(dataDir)),
    certificate,
    isClockRight: () => sensors.time().synchronized === true,
    clock,
    log,
  })
  const theirTime = controllerTime({ sinceBootMs, wallMs: clock.wallMs })
  const nowMs = () =>
    likelyDate({
      wallMs: clock.wallMs(),
      earliestMs: knownTime.earliestMs(),
      synchronized: sensors.time().synchronized,
      controller: theirTime.difference(),
    })
  return { knownTime, theirTime, nowMs, guessedMs: () => nowMs() ?? Math.max(clock.wallMs(), knownTime.earliestMs()) }
}
