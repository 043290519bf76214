/**
 * The rollout of a release of the agent, as it is stored in a ConfigMap. An operator writes what is to be done, the controller how far it
 * is, each under keys of its own.
 */
import type { ConfigMap } from '../config-map.ts'
import { decode } from '../decode.ts'
import { type Described, integer, list, object, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'

export const rolloutKey = { namespace: 'kube-system', name: 'bramble-agent-rollout' } as const
export const rolloutPath = `/api/v1/namespaces/${rolloutKey.namespace}/configmaps/${rolloutKey.name}`

export const rolloutFields = {
  wish: 'rollout',
  state: 'state',
  status: 'status',
  pause: 'pause',
  resumedAt: 'resumedAt',
} as const

type Data = Pick<ConfigMap, 'data'>

export function isRolloutMap({ metadata }: Pick<ConfigMap, 'metadata'>): boolean {
  return metadata.namespace === rolloutKey.namespace && metadata.name === rolloutKey.name
}

const StatusSchema = object({
  phase: text,
  message: text,
  rings: list(object({ name: text, nodes: integer, committed: integer, failed: integer, updating: integer })),
  stragglers: list(text),
  stragglerCount: integer,
})
/** `stragglers`: the first of them. */
export type StoredStatus = Described<typeof StatusSchema>

/** Undefined: the controller has not decided yet. */
export function readStatus({ data = {} }: Data): StoredStatus | undefined {
  const decoded = decode(StatusSchema, parseJson(data[rolloutFields.status] ?? ''))
  return decoded.ok ? decoded.value : undefined
}

const TargetSchema = object({ target: object({ version: text }) })

/** The version that is rolled out; undefined: none is. */
export function rolloutVersion({ data = {} }: Data): string | undefined {
  const decoded = decode(TargetSchema, parseJson(data[rolloutFields.wish] ?? ''))
  return decoded.ok ? decoded.value.target.version : undefined
}

export function isPausedByOperator({ data = {} }: Data): boolean {
  return data[rolloutFields.pause] !== undefined
}

/** What operators write; null removes a field. */
export const rolloutPauses = {
  pause: (why: string) => ({ [rolloutFields.pause]: why }),
  resume: (now: string) => ({ [rolloutFields.pause]: null, [rolloutFields.resumedAt]: now }),
}
