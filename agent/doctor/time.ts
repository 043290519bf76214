/** Who sets this machine's clock, and does it? */
import { clockSynchronized } from '../health/clock.ts'
import { type Finding, problem, unknown, warning } from './finding.ts'
import { findingOf } from './health.ts'

export type TimeReading = {
  readonly nowMs: number
  readonly uptimeMs: number
  /** `systemd-timesyncd`, `chrony` …, as far as it runs. */
  readonly service: string | undefined
  /** Undefined: nobody who would know can be asked. */
  readonly synchronized: boolean | undefined
}

/** No clock that is right shows an earlier one. */
const earliestMs = Date.UTC(2024, 0)

export function clockFinding({ nowMs, uptimeMs, service, synchronized }: TimeReading): Finding {
  const check = 'clock'
  if (nowMs < earliestMs) {
    const found = `The clock says ${new Date(nowMs).toISOString().slice(0, 10)}, which is long over: certificates are judged by the last time known`
    return problem(
      check,
      found,
      "Let the machine reach a time server ('timedatectl set-ntp true'), or set it with 'date -s'",
    )
  }
  if (service === undefined && synchronized !== true) {
    const found = 'Nothing sets the clock of this machine'
    return warning(check, found, 'Install systemd-timesyncd or chrony: a board without a battery wakes up in the past')
  }
  if (synchronized === undefined)
    return unknown(check, `${service} runs; whether it has heard a time server is not shown`)
  const found = findingOf(check, clockSynchronized({ synchronized, uptimeMs, controller: undefined }), '')
  return service === undefined ? found : { ...found, found: `${found.found} (${service})` }
}

/** `aheadMs`: of the controller's clock, by whole seconds; undefined when it did not say. */
export function controllerClock(aheadMs: number | undefined): Finding {
  const check = 'controller-clock'
  const controller = aheadMs === undefined ? undefined : { aheadMs, isExact: true }
  const condition = clockSynchronized({ synchronized: undefined, uptimeMs: 0, controller })
  return findingOf(check, condition, 'The controller did not say what time it is')
}
