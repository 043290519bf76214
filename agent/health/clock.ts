/** Checks the clock of this machine. A board without a battery-backed clock boots with a date in the past. */
import { type ConditionCheck, fine, type HealthFinding, seconds, wrong } from './condition-check.ts'

/** Time services other than systemd-timesyncd, and the files below the root that show that each runs. */
export const timeServices = [
  { name: 'chrony', mark: 'run/chrony' },
  { name: 'ntpd', mark: 'run/ntpd.pid' },
  { name: 'ntpd', mark: 'run/ntpsec' },
  { name: 'openntpd', mark: 'run/openntpd.pid' },
] as const

export type ClockReading = {
  /** As reported by systemd-timesyncd, or for another service by the kernel; undefined: neither reports it. */
  readonly synchronized: boolean | undefined
  readonly uptimeMs: number
  readonly controller: Difference | undefined
  /** How far the clock is behind the last known time. */
  readonly behindKnownMs?: number
}

/** How far this clock is ahead of the controller's. If not exact, the clock may be further behind, but not less. */
export type Difference = { readonly aheadMs: number; readonly isExact: boolean }

/** More than any message delay, and less than an error that invalidates certificates. */
const tolerableMs = 30_000
/** Time for a machine to reach a network and a time server after its start. */
const patienceMs = 10 * 60_000

export function clockSynchronized({
  synchronized,
  uptimeMs,
  controller,
  behindKnownMs = 0,
}: ClockReading): HealthFinding | undefined {
  const behind = controller !== undefined && controller.aheadMs < -tolerableMs
  const ahead = controller?.isExact === true && controller.aheadMs > tolerableMs
  if (behind || ahead) {
    const far = inWords(Math.abs(controller.aheadMs))
    return wrong(
      behind ? 'ClockBehindController' : 'ClockAheadOfController',
      `This machine's clock is more than ${far} ${behind ? 'behind' : 'ahead of'} the controller's`,
      "See 'timedatectl' on both, and check that each reaches a time server",
    )
  }
  if (behindKnownMs > tolerableMs) {
    return wrong(
      'ClockBehindKnownTime',
      `This machine's clock is more than ${inWords(behindKnownMs)} behind the last known time`,
      "See 'timedatectl', and check that a time server can be reached",
    )
  }
  if (synchronized === false && uptimeMs >= patienceMs) {
    return wrong(
      'ClockNotSynchronized',
      'No time server has answered since the machine was started',
      "See 'timedatectl timesync-status', open UDP port 123, or set a server in /etc/systemd/timesyncd.conf",
    )
  }
  if (synchronized === true) return fine('ClockSynchronized', 'The clock follows a time server')
  if (synchronized === false) return fine('ClockNotSynchronizedYet', 'No time server has answered yet')
  return controller?.isExact ? fine('ClockAgreesWithController', "The clock agrees with the controller's") : undefined
}

/** Rounded in steps, so that the message does not change all the time while a clock drifts. */
function inWords(ms: number): string {
  const steps = [
    [365 * 86_400_000, 'a year'],
    [86_400_000, 'a day'],
    [3_600_000, 'an hour'],
    [60_000, 'a minute'],
  ] as const
  return steps.find(([least]) => ms >= least)?.[1] ?? '30 seconds'
}

export const clockCheck: ConditionCheck<{ clock(): ClockReading | Promise<ClockReading> }> = {
  type: 'ClockUnsynchronized',
  name: 'clock',
  unknown: 'Nothing on this machine shows whether its clock is right',
  periodMs: 10 * seconds,
  riseMs: 20 * seconds,
  holdMs: 20 * seconds,
  look: async (source) => clockSynchronized(await source.clock()),
}

export type DateFacts = Pick<ClockReading, 'synchronized' | 'controller'> & {
  readonly wallMs: number
  /** The date is not before this. */
  readonly earliestMs: number
}

/** More than the time for which a machine without a time server is switched off, less than a date that is wrong by years. */
const plausibleMs = 400 * 86_400_000

/**
 * The controller's time is in whole seconds, and takes a moment to arrive: smaller differences do not count. The engine stamps containers
 * with this machine's clock, so a date that differs from it gives wrong durations.
 */
const noticeableMs = 2_000

/** The date from the best source; undefined without a source. */
export function likelyDate({ wallMs, earliestMs, synchronized, controller }: DateFacts): number | undefined {
  if (synchronized === true) return wallMs
  if (controller?.isExact) return Math.abs(controller.aheadMs) > noticeableMs ? wallMs - controller.aheadMs : wallMs
  const aheadMs = wallMs - earliestMs
  return synchronized === undefined && aheadMs >= 0 && aheadMs <= plausibleMs ? wallMs : undefined
}

type Observation = { readonly controllerMs: number; readonly atMs: number }

export interface ControllerTime {
  /** The controller sent its time: just now, or (`isLive` false) at an unknown moment before. */
  observe(controllerMs: number, isLive: boolean): void
  difference(): Difference | undefined
}

/**
 * The controller's clock, extrapolated from its last message with a clock that includes suspended time. It does not depend on
 * changes of this machine's clock.
 */
export function controllerTime(clock: { sinceBootMs(): number; wallMs(): number }): ControllerTime {
  let live: Observation | undefined
  let old: Observation | undefined
  return {
    observe(controllerMs, isLive) {
      if (!Number.isFinite(controllerMs)) return
      const observation = { controllerMs, atMs: clock.sinceBootMs() }
      if (isLive) live = observation
      else old = observation
    },
    difference() {
      const last = live ?? old
      if (last === undefined) return undefined
      const controllerNowMs = last.controllerMs + clock.sinceBootMs() - last.atMs
      return { aheadMs: clock.wallMs() - controllerNowMs, isExact: live !== undefined }
    },
  }
}
