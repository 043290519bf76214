/**
 * The rollout of a fleet as it is stored: a ConfigMap. The operator's command writes what is to be done, the controller how far it is,
 * each under keys of its own.
 */
import { type ConfigMap, ConfigMapSchema } from '../../../api/config-map.ts'
import { decode } from '../../../api/decode.ts'
import { isPausedByOperator, rolloutFields, rolloutPauses } from '../../../api/node/agent-rollout.ts'
import { isRelease } from '../../../api/node/agent-update.ts'
import { type Described, double, integer, list, object, optional, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { firstState, type RolloutState, type RolloutStatus } from './next-rollout.ts'
import { newResume } from './operator-resume.ts'
import { type RolloutRules, RolloutRulesSchema, readRolloutRules } from './rollout-rules.ts'

const FleetReleaseSchema = object({ version: text, sequence: integer, digest: text, floor: integer })
const WishSchema = object({
  target: FleetReleaseSchema,
  releases: list(FleetReleaseSchema),
  rules: RolloutRulesSchema,
  /** The release that the controller must have committed before any node gets the target. */
  controller: optional(object({ version: text })),
})
/** What the operator wants. */
export type RolloutWish = Described<typeof WishSchema>

const StateSchema = object({
  /** Digest of the target: the state of another rollout does not count. */
  target: text,
  ring: integer,
  soakSinceMs: optional(double),
  paused: optional(text),
  resumedMs: optional(double),
  resumedAt: optional(text),
})

const mostStragglers = 100
const mostReleases = 64

export type StoredRollout = {
  readonly wish: RolloutWish
  readonly state: RolloutState
}

/** Undefined: there is no rollout. A text: why the object cannot be used. `nowMs`: what resumes that are new count from; who only shows it needs none. */
export function readRollout({ data = {} }: Pick<ConfigMap, 'data'>, nowMs = 0): StoredRollout | string | undefined {
  const written = data[rolloutFields.wish]
  if (written === undefined) return undefined
  const decoded = decode(WishSchema, parseJson(written))
  if (!decoded.ok) return 'the field "rollout" cannot be read'
  const wish = decoded.value
  const rules: RolloutRules | string = readRolloutRules(wish.rules)
  if (typeof rules === 'string') return rules
  if (wish.releases.length > mostReleases || ![wish.target, ...wish.releases].every(isRelease))
    return 'the field "rollout" names something that is not a release'
  return { wish, state: withOperator(storedState(data[rolloutFields.state], wish), data, nowMs) }
}

function storedState(written: string | undefined, { target }: RolloutWish): RolloutState {
  const decoded = decode(StateSchema, parseJson(written ?? ''))
  if (!decoded.ok || decoded.value.target !== target.digest || decoded.value.ring < 0) return firstState
  const { target: _, ...state } = decoded.value
  return state
}

/** A pause of the operator holds until it is resumed; one of the controller until an operator has resumed it since. */
function withOperator(state: RolloutState, data: { readonly [key: string]: string }, nowMs: number): RolloutState {
  const again = newResume(state, data[rolloutFields.resumedAt], nowMs)
  const { paused: _, ...running } = state
  const resumed = again === undefined ? state : { ...running, ...again }
  return data[rolloutFields.pause] === undefined ? resumed : { ...resumed, paused: data[rolloutFields.pause] }
}

/** The rollout that the controller pauses because of failures, and why. Undefined: there is none, or an operator pauses it, too. */
export function failedRollout(
  map: Pick<ConfigMap, 'data'>,
): { readonly version: string; readonly reason: string } | undefined {
  const rollout = readRollout(map)
  if (typeof rollout !== 'object' || isPausedByOperator(map) || rollout.state.paused === undefined) return undefined
  return { version: rollout.wish.target.version, reason: rollout.state.paused }
}

/** What the controller writes. A pause of the operator is not made one of the controller's. */
export function rolloutData(
  { data = {} }: Pick<ConfigMap, 'data'>,
  { target }: RolloutWish,
  state: RolloutState,
  status: RolloutStatus,
): { readonly [key: string]: string } {
  const { paused, ...rest } = state
  const kept = paused !== undefined && paused !== data[rolloutFields.pause] ? { ...rest, paused } : rest
  const { stragglers, ...shown } = status
  return {
    [rolloutFields.state]: JSON.stringify({ target: target.digest, ...kept }),
    [rolloutFields.status]: JSON.stringify({
      ...shown,
      stragglers: stragglers.slice(0, mostStragglers),
      stragglerCount: stragglers.length,
    }),
  }
}

/** What the operator's commands write; null removes a key. */
export const rolloutCommands = {
  start: (wish: RolloutWish) => ({
    [rolloutFields.wish]: JSON.stringify(wish),
    [rolloutFields.state]: null,
    [rolloutFields.status]: null,
    [rolloutFields.pause]: null,
    [rolloutFields.resumedAt]: null,
  }),
  ...rolloutPauses,
}

/** Undefined: it is not a ConfigMap. */
export function readConfigMap(value: unknown): ConfigMap | undefined {
  const decoded = decode(ConfigMapSchema, value)
  return decoded.ok ? decoded.value : undefined
}
