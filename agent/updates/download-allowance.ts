/** When a release may be downloaded, and how many bytes of it. Decides only. */
import { type DailyWindow, isWindowOpen, windowStartText } from '../../api/text/daily-window.ts'

export type DownloadRules = {
  readonly window?: DailyWindow
  readonly bytesPerDay?: number
  /** The link is paid by volume: nothing is downloaded without `bytesPerDay`. */
  readonly isMetered: boolean
}

/** What was downloaded on a day, a number of days since 1970. */
export type SpentBytes = { readonly day: number; readonly bytes: number }

export type DownloadFacts = {
  /** Undefined: no source of the date is reliable. */
  readonly nowMs: number | undefined
  readonly uptimeMs: number
  readonly spent: SpentBytes | undefined
}

export type Allowance =
  | { readonly may: 'download'; readonly bytes: number }
  | { readonly may: 'wait'; readonly reason: string }

const dayMs = 86_400_000
/** Without a date no window opens. A machine whose clock is never right must be updated, too. */
const longestWithoutDateMs = dayMs

export function downloadAllowance(rules: DownloadRules, facts: DownloadFacts): Allowance {
  const { window, bytesPerDay, isMetered } = rules
  const { nowMs, uptimeMs } = facts
  if (isMetered && bytesPerDay === undefined)
    return wait('the link is metered: set updates.bytesPerDay in the configuration of the agent')
  if (window !== undefined) {
    if (nowMs === undefined && uptimeMs < longestWithoutDateMs)
      return wait('the date is not known, so the window counts as closed until the machine has run for a day')
    if (nowMs !== undefined && !isWindowOpen(window, nowMs))
      return wait(`the window opens at ${windowStartText(window)} UTC`)
  }
  if (bytesPerDay === undefined) return { may: 'download', bytes: Number.MAX_SAFE_INTEGER }
  const left = bytesPerDay - spentToday(facts)
  return left > 0 ? { may: 'download', bytes: left } : wait(`the ${bytesPerDay} bytes of this day are used up`)
}

/** `bytes` more were downloaded. Without a date the days are those since the boot. */
export function spentWith(facts: DownloadFacts, bytes: number): SpentBytes {
  return { day: dayOf(facts), bytes: spentToday(facts) + bytes }
}

function spentToday(facts: DownloadFacts): number {
  return facts.spent?.day === dayOf(facts) ? facts.spent.bytes : 0
}

function dayOf({ nowMs, uptimeMs }: DownloadFacts): number {
  return Math.floor((nowMs ?? uptimeMs) / dayMs)
}

function wait(reason: string): Allowance {
  return { may: 'wait', reason }
}
