/** A part of each day, in UTC, in which work may begin. */

/** Minutes of the day in UTC from which on, and up to which; it may go over midnight. */
export type DailyWindow = { readonly fromMinute: number; readonly toMinute: number }

/** Undefined: the text is not two different times of day like `02:00-05:00`. */
export function readDailyWindow(written: string): DailyWindow | undefined {
  const [, fromHour, fromMinute, toHour, toMinute] =
    /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/.exec(written) ?? []
  const from = Number(fromHour) * 60 + Number(fromMinute)
  const to = Number(toHour) * 60 + Number(toMinute)
  return Number.isNaN(from) || from === to ? undefined : { fromMinute: from, toMinute: to }
}

/** `nowMs`: milliseconds since 1970. */
export function isWindowOpen({ fromMinute, toMinute }: DailyWindow, nowMs: number): boolean {
  const minute = Math.floor((nowMs % dayMs) / 60_000)
  return fromMinute <= toMinute ? fromMinute <= minute && minute < toMinute : minute >= fromMinute || minute < toMinute
}

/** When a window that is closed now opens next, in milliseconds since 1970. */
export function windowOpensMs({ fromMinute }: DailyWindow, nowMs: number): number {
  const today = nowMs - (nowMs % dayMs) + fromMinute * 60_000
  return today > nowMs ? today : today + dayMs
}

/** The beginning of the window as `02:00`. */
export function windowStartText({ fromMinute }: DailyWindow): string {
  return [Math.floor(fromMinute / 60), fromMinute % 60].map((part) => String(part).padStart(2, '0')).join(':')
}

const dayMs = 86_400_000
