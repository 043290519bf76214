/** The date: from this machine's clock, a time server, the controller and the last known time. */
import { type Clock, sinceBootMs } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { knownTimePath, timeFile } from '../adapters/disk/time-file.ts'
import type { MachineSensors } from '../adapters/kernel/machine-sensors.ts'
import { type ControllerTime, controllerTime, likelyDate } from '../health/clock.ts'
import { type KnownTimeKeeper, openKnownTime } from '../node/certificate/known-time.ts'

export type DateParts = {
  readonly dataDir: string
  /** The agent's own, PEM: it was issued in the past. */
  readonly certificate: string
  readonly sensors: MachineSensors
  readonly clock: Clock
  readonly log: Log
}

export type MachineDate = {
  readonly knownTime: KnownTimeKeeper
  readonly controllerClock: ControllerTime
  /** Undefined if no source is reliable. */
  readonly nowMs: () => number | undefined
  /** Without a reliable source: the clock, or the last known time if that is later. */
  readonly estimatedMs: () => number
}

export async function assembleDate({ dataDir, certificate, sensors, clock, log }: DateParts): Promise<MachineDate> {
  const knownTime = await openKnownTime({
    file: timeFile(knownTimePath(dataDir)),
    certificate,
    isClockRight: () => sensors.time().synchronized === true,
    clock,
    log,
  })
  const controllerClock = controllerTime({ sinceBootMs, wallMs: clock.wallMs })
  const nowMs = () =>
    likelyDate({
      wallMs: clock.wallMs(),
      earliestMs: knownTime.earliestMs(),
      synchronized: sensors.time().synchronized,
      controller: controllerClock.difference(),
    })
  return {
    knownTime,
    controllerClock,
    nowMs,
    estimatedMs: () => nowMs() ?? Math.max(clock.wallMs(), knownTime.earliestMs()),
  }
}
