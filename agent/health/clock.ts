/** Is this machine's clock right? A board without a battery wakes up in the past. */
import { type Finding, fine, wrong } from './finding.ts'

/** Who sets clocks beside systemd-timesyncd, and what below the root shows that it runs. */
export const timeServices = [
  { name: 'chrony', mark: 'run/chrony' },
  { name: 'ntpd', mark: 'run/ntpd.pid' },
  { name: 'ntpd', mark: 'run/ntpsec' },
  { name: 'openntpd', mark: 'run/openntpd.pid' },
] as const

export type ClockReading = {
  /** What systemd-timesyncd says of itself, or of another service the kernel; undefined: nobody tells. */
  readonly synchronized: boolean | undefined
  readonly uptimeMs: number
  readonly controller: Difference | undefined
  /** How far it is behind the last time known for certain. */
  readonly behindKnownMs?: number
}

/** How far this clock is ahead of the controller's. Not exact: it may be further behind than that, never less. */
export type Difference = { readonly aheadMs: number; readonly isExact: boolean }

/** More than any delay of a message, less than what breaks certificates. */
const tolerableMs = 30_000
/** After its start a machine may take a while to find a network and a time server. */
const patienceMs = 10 * 60_000

export function clockSynchronized({
  synchronized,
  uptimeMs,
  controller,
  behindKnownMs = 0,
}: ClockReading): Finding | undefined {
  const behind = controller !== undefined && controller.aheadMs < -tolerableMs
  const ahead = controller?.isExact === true && controller.aheadMs > tolerableMs
  if (behind || ahead) {
    const far = inWords(Math.abs(controller.aheadMs))
    const remedy = "see 'timedatectl' on both, and that each reaches a time server"
    return wrong(
      behind ? 'ClockBehindController' : 'ClockAheadOfController',
      `This machine's clock is more than ${far} ${behind ? 'behind' : 'ahead of'} the controller's: ${remedy}`,
    )
  }
  if (behindKnownMs > tolerableMs) {
    return wrong(
      'ClockBehindKnownTime',
      `This machine's clock is more than ${inWords(behindKnownMs)} behind the last time it knew: see 'timedatectl', and that a time server can be reached`,
    )
  }
  if (synchronized === false && uptimeMs >= patienceMs) {
    return wrong(
      'ClockNotSynchronized',
      "No time server has been heard since the machine was started: see 'timedatectl timesync-status', let UDP port 123 through, or name a server in /etc/systemd/timesyncd.conf",
    )
  }
  if (synchronized === true) return fine('ClockSynchronized', 'The clock follows a time server')
  if (synchronized === false) return fine('ClockNotSynchronizedYet', 'No time server has been heard yet')
  return controller?.isExact ? fine('ClockAgreesWithController', "The clock agrees with the controller's") : undefined
}

/** In steps, so that a clock that drifts is not told of all day. */
function inWords(ms: number): string {
  const steps = [
    [365 * 86_400_000, 'a year'],
    [86_400_000, 'a day'],
    [3_600_000, 'an hour'],
    [60_000, 'a minute'],
  ] as const
  return steps.find(([least]) => ms >= least)?.[1] ?? '30 seconds'
}

export type DateFacts = Pick<ClockReading, 'synchronized' | 'controller'> & {
  readonly wallMs: number
  /** It is not before this. */
  readonly earliestMs: number
}

/** Longer than any machine is off that has no time server; less than what a wrong date of years is. */
const plausibleMs = 400 * 86_400_000

/** The date, by whoever knows it best; undefined while nobody can tell. */
export function likelyDate({ wallMs, earliestMs, synchronized, controller }: DateFacts): number | undefined {
  if (synchronized === true) return wallMs
  if (controller?.isExact) return wallMs - controller.aheadMs
  const aheadMs = wallMs - earliestMs
  return synchronized === undefined && aheadMs >= 0 && aheadMs <= plausibleMs ? wallMs : undefined
}

type Heard = { readonly controllerMs: number; readonly atMs: number }

export interface ControllerTime {
  /** The controller said what time it is: just now, or (`isLive` false) at some moment before. */
  heard(controllerMs: number, isLive: boolean): void
  difference(): Difference | undefined
}

/**
 * What is known of the controller's clock. Holds when ours is set: it is measured on from when it was heard, through a time in
 * which the machine was suspended too.
 */
export function controllerTime(clock: { sinceBootMs(): number; wallMs(): number }): ControllerTime {
  let live: Heard | undefined
  let old: Heard | undefined
  return {
    heard(controllerMs, isLive) {
      if (!Number.isFinite(controllerMs)) return
      const heard = { controllerMs, atMs: clock.sinceBootMs() }
      if (isLive) live = heard
      else old = heard
    },
    difference() {
      const heard = live ?? old
      if (heard === undefined) return undefined
      const controllerNowMs = heard.controllerMs + clock.sinceBootMs() - heard.atMs
      return { aheadMs: clock.wallMs() - controllerNowMs, isExact: live !== undefined }
    },
  }
}
