/** When releases may be downloaded, as the configuration of the agent has it. */
import { quantityToNumber, tryParseQuantity } from '../../api/quantity.ts'
import { type Described, object, optional, text } from '../../api/schema.ts'
import { readDailyWindow } from '../../api/text/daily-window.ts'
import type { DownloadRules } from './download-allowance.ts'

export const UpdateSettingsSchema = object({ window: optional(text), bytesPerDay: optional(text) })
export type UpdateSettings = Described<typeof UpdateSettingsSchema>

/** Adds what is wrong to `problems`. */
export function downloadRules(
  { window, bytesPerDay }: UpdateSettings,
  isMetered: boolean,
  problems: string[],
): DownloadRules {
  const minutes = window === undefined ? undefined : readDailyWindow(window)
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
