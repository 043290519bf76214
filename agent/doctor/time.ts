/** Checks of the machine's clock and of the service that sets it. */
import { clockSynchronized } from '../health/clock.ts'
import { type DoctorFinding, problem, unknown, warning } from './doctor-finding.ts'
import { healthFinding } from './health.ts'

export type TimeReading = {
  readonly nowMs: number
  /** `systemd-timesyncd`, `chrony` …, if one runs. */
  readonly service: string | undefined
  /** Undefined: the machine has no source for it. */
  readonly synchronized: boolean | undefined
}

/** No correct clock shows an earlier date. */
const earliestMs = Date.UTC(2024, 0)

/** `found`: what the health check found. */
export function clockFinding(found: DoctorFinding, { nowMs, service, synchronized }: TimeReading): DoctorFinding {
  const { check } = found
  if (nowMs < earliestMs) {
    return problem(
      check,
      `The clock shows ${new Date(nowMs).toISOString().slice(0, 10)}, which is in the past: certificates are judged by the last known time`,
      "Let the machine reach a time server ('timedatectl set-ntp true'), or set it with 'date -s'",
    )
  }
  if (service === undefined && synchronized !== true) {
    return warning(
      check,
      'Nothing sets the clock of this machine',
      'Install systemd-timesyncd or chrony: a board without a battery starts in the past',
    )
  }
  if (synchronized === undefined)
    return unknown(check, `${service} runs; it does not show whether a time server answered`)
  return service === undefined ? found : { ...found, found: `${found.found} (${service})` }
}

/** `aheadMs`: the offset to the controller's clock, in whole seconds; undefined where the controller sent no time. */
export function controllerClock(aheadMs: number | undefined): DoctorFinding {
  const check = 'controller-clock'
  const controller = aheadMs === undefined ? undefined : { aheadMs, isExact: true }
  const condition = clockSynchronized({ synchronized: undefined, uptimeMs: 0, controller })
  return healthFinding({ name: check, unknown: 'The controller did not send its time' }, condition)
}
