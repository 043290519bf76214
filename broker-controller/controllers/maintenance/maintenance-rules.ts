/** How the machines of a fleet are maintained: when, how many at a time, and how long each part may take. */
import { decode } from '../../../api/decode.ts'
import { problemText } from '../../../api/problem.ts'
import { type Described, integer, object, optional, text } from '../../../api/schema.ts'
import { readDailyWindow } from '../../../api/text/daily-window.ts'

export const MaintenanceRulesSchema = object({
  /** Two times of day in UTC between which a maintenance may begin; one that has begun goes on. Left out: at any time. */
  window: optional(text),
  /** Nodes that may be under maintenance at a time: of a link, of a zone, of the fleet. Without a number there is no limit. */
  perLink: optional(integer),
  perZone: optional(integer),
  atOnce: optional(integer),
  /** A node that is not drained, upgraded, restarted or healthy again after so long has failed. */
  drainSeconds: integer,
  upgradeSeconds: integer,
  rebootSeconds: integer,
  healthSeconds: integer,
  /** A node counts as healthy when it has been so for this long. */
  settleSeconds: integer,
  /** A node has its next maintenance so long after the last one at the earliest. */
  againSeconds: integer,
})
export type MaintenanceRules = Described<typeof MaintenanceRulesSchema>

/** For a fleet without options. `againSeconds`: less than a day, so that a window that opens at the same time each day is not missed. */
export const usualMaintenance: MaintenanceRules = {
  perLink: 1,
  atOnce: 1,
  drainSeconds: 1800,
  upgradeSeconds: 7200,
  rebootSeconds: 1800,
  healthSeconds: 900,
  settleSeconds: 120,
  againSeconds: 72_000,
}

const longestSeconds = 86_400

/** The rules, or why they cannot be used. */
export function readMaintenanceRules(value: unknown): MaintenanceRules | string {
  const decoded = decode(MaintenanceRulesSchema, value)
  if (!decoded.ok) return decoded.problems.map(problemText).join('; ')
  const rules = decoded.value
  const { window, perLink, perZone, atOnce } = rules
  if (window !== undefined && readDailyWindow(window) === undefined)
    return `window: ${JSON.stringify(window.slice(0, 40))} must be two times of day in UTC (like 02:00-05:00)`
  for (const [name, most] of Object.entries({ perLink, perZone, atOnce }))
    if (most !== undefined && !(most >= 1)) return `${name}: must be at least 1`
  for (const name of durations)
    if (!(rules[name] >= 0 && rules[name] <= longestSeconds)) return `${name}: must be from 0 to ${longestSeconds}`
  return rules
}

const durations = [
  'drainSeconds',
  'upgradeSeconds',
  'rebootSeconds',
  'healthSeconds',
  'settleSeconds',
  'againSeconds',
] as const
