/** When releases may be downloaded, as the configuration of the agent has it. */
import { quantityToNumber, tryParseQuantity } from '../../api/quantity.ts'
import { type Described, object, optional, text } from '../../api/schema.ts'
import type { DownloadRules } from './download-allowance.ts'

export const UpdateSettingsSchema = object({ window: optional(text), bytesPerDay: optional(text) })
export type UpdateSettings = Described<typeof UpdateSettingsSchema>

/** Adds what is wrong to `problems`. */
export function downloadRules(
  { window, bytesPerDay }: UpdateSettings,
  isMetered: boolean,
  problems: string[],
): DownloadRules {
  const minutes = window === undefined ? undefined : minutesOf(window)
  if (window !== undefined && minutes === undefined)
    problems.push(`agentUpdates.window: ${JSON.stringify(window)} must be two times of day in UTC (like 02:00-05:00)`)
  const amount = bytesPerDay === undefined ? undefined : tryParseQuantity(bytesPerDay)
  const bytes = amount === undefined ? Number.NaN : quantityToNumber(amount)
  const isAmount = Number.isSafeInteger(bytes) && bytes >= leastBytesPerDay
  if (bytesPerDay !== undefined && !isAmount)
    problems.push(
      `agentUpdates.bytesPerDay: ${JSON.stringify(bytesPerDay)} must be a quantity of at least 64Ki (like 10Mi)`,
    )
  return { isMetered, ...(minutes && { window: minutes }), ...(isAmount && { bytesPerDay: bytes }) }
}

/** Enough for release.json, its signatures, and some of the archive. */
const leastBytesPerDay = 65_536

function minutesOf(window: string): DownloadRules['window'] {
  const [, fromHour, fromMinute, toHour, toMinute] =
    /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/.exec(window) ?? []
  const from = Number(fromHour) * 60 + Number(fromMinute)
  const to = Number(toHour) * 60 + Number(toMinute)
  return Number.isNaN(from) || from === to ? undefined : { fromMinute: from, toMinute: to }
}
