/** A node that announced that it goes away, and until when its absence is expected. */
import type { Lease } from '../../../api/lease.ts'
import { expectedBackAnnotation, goodbyeReasonAnnotation } from '../../../api/node/lifecycle-annotations.ts'
import type { Node } from '../../../api/node.ts'
import { rfc3339 } from '../../../daemon/clock.ts'

export type AbsenceSettings = {
  /** The longest a goodbye holds evictions; 0: it holds none. */
  readonly plannedAbsenceLimitMs: number
}

export type Absence = {
  /** In the node's words: `reboot`. */
  readonly reason: string
  /** Identifies the goodbye; undefined: it was received before the controller was restarted. */
  readonly goodbye: string | undefined
  /** undefined: it gave no time, or the time is not accepted. */
  readonly expectedBack: ExpectedBack | undefined
}
export type ExpectedBack = { readonly ms: number; readonly time: string }

type Now = { readonly monotonicMs: number; readonly wallMs: number }

/** On a node's Lease. */
const connectionReason = 'bramble.dev/connection-reason'
const expectedBackSeconds = 'bramble.dev/expected-back-seconds'

/** The goodbye on this lease, received now; one that is recorded already stays as it is. */
export function absenceFrom(lease: Lease, known: Absence | undefined, now: Now, settings: AbsenceSettings): Absence {
  const { [connectionReason]: reason = 'no reason given', [expectedBackSeconds]: seconds } =
    lease.metadata.annotations ?? {}
  const goodbye = `${reason} ${seconds ?? ''}`
  if (known !== undefined && (known.goodbye === goodbye || known.goodbye === undefined)) return { ...known, goodbye }
  const awayMs = Math.min(Number(seconds ?? 0) * 1000, settings.plannedAbsenceLimitMs)
  return { reason, goodbye, expectedBack: awayMs > 0 ? expected(awayMs, now) : undefined }
}

/** The goodbye that this Node still bears from before the controller was restarted. */
export function absenceKept({ metadata }: Node, now: Now, settings: AbsenceSettings): Absence | undefined {
  const { [expectedBackAnnotation]: time, [goodbyeReasonAnnotation]: reason = 'no reason given' } =
    metadata.annotations ?? {}
  if (time === undefined) return undefined
  const leftMs = Math.min(Date.parse(time) - now.wallMs, settings.plannedAbsenceLimitMs)
  const expectedBack = leftMs > 0 ? { ms: now.monotonicMs + leftMs, time } : undefined
  return { reason, goodbye: undefined, expectedBack }
}

/** True while the node is away and expected back later. */
export function isExpectedLater(absence: Absence | undefined, nowMs: number): boolean {
  return absence?.expectedBack !== undefined && nowMs <= absence.expectedBack.ms
}

export function absenceText({ reason, expectedBack }: Absence): string {
  const back = expectedBack === undefined ? '' : ` and is expected back by ${expectedBack.time}`
  return `The node disconnected cleanly (${reason})${back}.`
}

/** The node with this goodbye written on it, or with none. Undefined: it is so. */
export function withAbsence<N extends Node>(node: N, absence: Absence | undefined): N | undefined {
  const {
    [expectedBackAnnotation]: time,
    [goodbyeReasonAnnotation]: reason,
    ...others
  } = node.metadata.annotations ?? {}
  const noted = absence?.expectedBack && {
    [expectedBackAnnotation]: absence.expectedBack.time,
    [goodbyeReasonAnnotation]: absence.reason,
  }
  if (time === noted?.[expectedBackAnnotation] && reason === noted?.[goodbyeReasonAnnotation]) return undefined
  return { ...node, metadata: { ...node.metadata, annotations: { ...others, ...noted } } }
}

function expected(awayMs: number, { monotonicMs, wallMs }: Now): ExpectedBack {
  return { ms: monotonicMs + awayMs, time: rfc3339(wallMs + awayMs) }
}
