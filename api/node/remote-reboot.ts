/**
 * The reboot of a machine on request: what the node receives in its `desired` message. A request is for one boot of the machine, so
 * that it is carried out once however often it is delivered.
 */
import { decode } from '../decode.ts'
import type { Node } from '../node.ts'
import { type Described, object, oneOf, optional, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'
import { rebootRequestedAnnotation, rebootStatusAnnotation } from './reboot-annotations.ts'

/** A request is carried out within this time, or not at all: a machine that was away must not restart hours later. */
export const rebootRequestLifetimeMs = 5 * 60_000

/** Restart the machine if `bootID` is still its boot. */
export const RebootRequestSchema = object({ requestedAt: text, bootID: text })
export type RebootRequest = Described<typeof RebootRequestSchema>

/** `requestedAt`: the request that this is about. `bootID`: the boot that it ends. */
export const RebootStatusSchema = object({
  requestedAt: text,
  state: oneOf('Pending', 'Completed', 'Refused', 'Expired'),
  bootID: optional(text),
})
export type RebootStatus = Described<typeof RebootStatusSchema>

/** What became of the last request; undefined: there was none, or the annotation cannot be read. */
export function rebootStatusOf({ metadata }: Pick<Node, 'metadata'>): RebootStatus | undefined {
  const written = metadata.annotations?.[rebootStatusAnnotation]
  if (written === undefined) return undefined
  const decoded = decode(RebootStatusSchema, parseJson(written))
  return decoded.ok ? decoded.value : undefined
}

/** The request that the node has to carry out now; undefined: none. A request whose annotation is removed or replaced is withdrawn. */
export function pendingReboot({ metadata }: Pick<Node, 'metadata'>): RebootRequest | undefined {
  const asked = metadata.annotations?.[rebootRequestedAnnotation]
  if (asked === undefined) return undefined
  const { requestedAt, state, bootID } = rebootStatusOf({ metadata }) ?? {}
  if (requestedAt !== asked || state !== 'Pending' || bootID === undefined) return undefined
  return { requestedAt, bootID }
}

/** Why `written` cannot be the time of a request, as the end of a sentence; undefined: it can. */
export function rebootTimeProblem(written: string): string | undefined {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(written)
  return isTime && Number.isFinite(Date.parse(written))
    ? undefined
    : 'must be an RFC 3339 time like 2026-01-02T03:04:05Z'
}

/** Why a request of this time is not carried out at `nowMs`, as the end of a sentence; undefined: it is. */
export function rebootTimeRefusal(requestedAt: string, nowMs: number): string | undefined {
  const problem = rebootTimeProblem(requestedAt)
  if (problem !== undefined) return `its time ${problem}`
  const ageMs = nowMs - Date.parse(requestedAt)
  const minutes = rebootRequestLifetimeMs / 60_000
  if (ageMs > rebootRequestLifetimeMs) return `it is more than ${minutes} minutes old`
  return ageMs < -rebootRequestLifetimeMs ? `its time is more than ${minutes} minutes in the future` : undefined
}
