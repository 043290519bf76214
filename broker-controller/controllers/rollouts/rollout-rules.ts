/** How a release goes through a fleet: the rings one after the other, and the limits that hold in each of them. */
import { decode } from '../../../api/decode.ts'
import { problemText } from '../../../api/problem.ts'
import { type Described, integer, list, mapOf, object, optional, text } from '../../../api/schema.ts'

/** The nodes of a ring are those with all `labels`, or so many of the rest of the fleet. A node is in the first ring that it fits. */
const RingSchema = object({
  name: text,
  labels: optional(mapOf(text)),
  count: optional(integer),
  percent: optional(integer),
  /** How long the ring runs the release before the next ring gets it. */
  soakSeconds: integer,
})
export type Ring = Described<typeof RingSchema>

export const RolloutRulesSchema = object({
  /** All other nodes are in a ring after these. */
  rings: list(RingSchema),
  /** Nodes that may be taking the release at a time: of a link, of a zone, of the fleet. Without a number there is no limit. */
  perLink: optional(integer),
  perZone: optional(integer),
  atOnce: optional(integer),
  /** It pauses when so many nodes of a ring have failed, and they are so many percent of those of the ring that have begun. */
  failureCount: integer,
  failurePercent: integer,
  /** A node that took a release back gets none for this time, as often as it did so one after the other. */
  penaltySeconds: integer,
  /** A node that goes away on trial, or within `watchSeconds` after it, and stays away for so long without a goodbye, has failed. */
  lostSeconds: integer,
  watchSeconds: integer,
  /** A node that has not taken the release so long after it may holds up no other. */
  stallSeconds: integer,
})
export type RolloutRules = Described<typeof RolloutRulesSchema>

/** The name of the ring of all nodes that are in no other. */
export const restRing = 'rest'

/** For a fleet without rules: one node, an hour, then one node of a link at a time; the first failure pauses. */
export const usualRules: RolloutRules = {
  rings: [{ name: 'canary', count: 1, soakSeconds: 3600 }],
  perLink: 1,
  failureCount: 1,
  failurePercent: 0,
  penaltySeconds: 86_400,
  lostSeconds: 900,
  watchSeconds: 3600,
  stallSeconds: 86_400,
}

const mostRings = 16
const longestSeconds = 366 * 86_400

/** The rules, or why they cannot be used. */
export function readRolloutRules(value: unknown): RolloutRules | string {
  const decoded = decode(RolloutRulesSchema, value)
  if (!decoded.ok) return decoded.problems.map(problemText).join('; ')
  const rules = decoded.value
  return rulesProblem(rules) ?? rules
}

function rulesProblem(rules: RolloutRules): string | undefined {
  const { rings, perLink, perZone, atOnce, failureCount, failurePercent } = rules
  if (rings.length > mostRings) return `rings: more than ${mostRings}`
  const names = [...rings.map(({ name }) => name), restRing]
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) return `rings: the name ${twice} is taken twice`
  for (const [at, ring] of rings.entries()) {
    const problem = ringProblem(ring)
    if (problem !== undefined) return `rings[${at}]${problem}`
  }
  for (const [name, most] of Object.entries({ perLink, perZone, atOnce, failureCount }))
    if (most !== undefined && !(most >= 1)) return `${name}: must be at least 1`
  if (failurePercent < 0 || failurePercent > 100) return 'failurePercent: must be from 0 to 100'
  for (const name of ['penaltySeconds', 'lostSeconds', 'watchSeconds', 'stallSeconds'] as const)
    if (!isDuration(rules[name])) return `${name}: must be from 0 to ${longestSeconds}`
  return undefined
}

function ringProblem({ name, labels, count, percent, soakSeconds }: Ring): string | undefined {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return '.name: must be a DNS label'
  if ([labels, count, percent].filter((one) => one !== undefined).length !== 1)
    return ': must have one of labels, count and percent'
  if (labels !== undefined && Object.keys(labels).length === 0) return '.labels: must not be empty'
  if (count !== undefined && count < 1) return '.count: must be at least 1'
  if (percent !== undefined && (percent < 1 || percent > 100)) return '.percent: must be from 1 to 100'
  return isDuration(soakSeconds) ? undefined : `.soakSeconds: must be from 0 to ${longestSeconds}`
}

function isDuration(seconds: number): boolean {
  return seconds >= 0 && seconds <= longestSeconds
}
