/** What becomes of the request to restart a machine, which an annotation of its Node carries. */
import {
  allowsRemoteReboot,
  rebootRequestedAnnotation,
  rebootStatusAnnotation,
} from '../../../api/node/reboot-annotations.ts'
import {
  type RebootStatus,
  rebootRequestLifetimeMs,
  rebootStatusOf,
  rebootTimeRefusal,
} from '../../../api/node/remote-reboot.ts'
import type { Node } from '../../../api/node.ts'

export type RebootEvent = {
  readonly type: 'Normal' | 'Warning'
  readonly reason: 'RebootRequested' | 'RebootCompleted' | 'RebootRefused' | 'RebootExpired'
  readonly message: string
}

/** `write`: the status changes, and an Event records it. `wait`: nothing changes before `untilMs`, on the wall clock. */
export type RebootStep =
  | { readonly step: 'write'; readonly status: RebootStatus; readonly event: RebootEvent }
  | { readonly step: 'wait'; readonly untilMs: number }
  | { readonly step: 'none' }

/** An annotation may be 256 KiB long; a time is shorter. */
const longestTime = 64

/**
 * A request that was not seen before is bound to the boot that the node reported last, before the node receives it. It is completed
 * by any other boot. So a request cannot restart a machine twice, whatever is delivered again or restored.
 */
export function rebootStep(node: Node, nowMs: number): RebootStep {
  const asked = node.metadata.annotations?.[rebootRequestedAnnotation]?.slice(0, longestTime)
  if (asked === undefined) return { step: 'none' }
  const status = rebootStatusOf(node)
  const bootID = node.status?.nodeInfo?.bootID || undefined
  return status?.requestedAt === asked ? pendingStep(status, bootID, nowMs) : newStep(node, asked, bootID, nowMs)
}

function newStep(node: Node, requestedAt: string, bootID: string | undefined, nowMs: number): RebootStep {
  const name = node.metadata.name ?? ''
  const refusal =
    rebootTimeRefusal(requestedAt, nowMs) ??
    (allowsRemoteReboot(node) ? undefined : 'the configuration of its agent does not have enableRemoteReboot: true') ??
    (bootID === undefined ? 'it has not reported its boot ID' : undefined)
  if (refusal !== undefined) {
    const message = `The request of ${requestedAt} to reboot node ${name} is refused: ${refusal}`
    return write({ requestedAt, state: 'Refused' }, { type: 'Warning', reason: 'RebootRefused', message })
  }
  const message = `Node ${name} is requested to reboot (${requestedAt})`
  const status: RebootStatus = { requestedAt, state: 'Pending', ...(bootID !== undefined && { bootID }) }
  return write(status, { type: 'Normal', reason: 'RebootRequested', message })
}

function pendingStep(status: RebootStatus, bootID: string | undefined, nowMs: number): RebootStep {
  const { requestedAt, state } = status
  if (state !== 'Pending') return { step: 'none' }
  if (bootID !== undefined && bootID !== status.bootID) {
    const message = `The machine has rebooted, as requested at ${requestedAt}; boot ID: ${bootID}`
    return write({ ...status, state: 'Completed' }, { type: 'Normal', reason: 'RebootCompleted', message })
  }
  if (rebootTimeRefusal(requestedAt, nowMs) === undefined) {
    return { step: 'wait', untilMs: Date.parse(requestedAt) + rebootRequestLifetimeMs + 1 }
  }
  const message = `The request of ${requestedAt} to reboot has expired: the machine has not reported another boot within ${rebootRequestLifetimeMs / 60_000} minutes`
  return write({ ...status, state: 'Expired' }, { type: 'Warning', reason: 'RebootExpired', message })
}

function write(status: RebootStatus, event: RebootEvent): RebootStep {
  return { step: 'write', status, event }
}

/** The node with this status of its request. */
export function withRebootStatus<N extends Node>(node: N, status: RebootStatus): N {
  const annotations = { ...node.metadata.annotations, [rebootStatusAnnotation]: JSON.stringify(status) }
  return { ...node, metadata: { ...node.metadata, annotations } }
}
