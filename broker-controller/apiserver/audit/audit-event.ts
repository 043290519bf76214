/**
 * One line of the audit log: a request as an Event of audit.k8s.io/v1 at the level Metadata. It has no part of a body, no header
 * but the user agent, and no message, for messages quote values.
 */
import type { Identity } from '../../../api/identity.ts'
import { isObject } from '../../../api/text/json.ts'
import { type AggregatedRoute, type ResourceRoute, subresourceOf } from '../handlers/strategy.ts'

/** What was found out about the sender of a request, as far as it came. */
export type RequestSender = {
  /** As authenticated. */
  readonly identity?: Identity
  readonly impersonated?: Identity
  /** The controller that passed the request on, and the client's address there. */
  readonly via?: string
  readonly address?: string | undefined
  /** undefined: the request was answered before it was authorized. */
  readonly decision?: 'allow' | 'forbid'
  /** Annotations that admission webhooks add. */
  readonly annotations?: Readonly<Record<string, string>>
}

/** Only requests for objects are audited, in this server or in an extension server. */
export type AuditedRoute = ResourceRoute | AggregatedRoute

export type AuditFacts = {
  readonly id: string
  readonly stage: 'ResponseStarted' | 'ResponseComplete'
  readonly route: AuditedRoute
  readonly sender: RequestSender
  /** As in the request line. */
  readonly uri: string
  readonly address: string | undefined
  readonly userAgent: string | undefined
  readonly code: number
  /** Body of the response, where it is an object. */
  readonly body: unknown
  readonly receivedMs: number
  readonly tookMs: number
}

const longestUri = 2048
const longestUserAgent = 256
const mostGroups = 100
const writes: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])

/** Whether requests of this route are written down: those that change something, and connections into pods. */
export function isAudited(route: AuditedRoute): boolean {
  if (route.kind === 'aggregated') return route.resource !== '' && writes.has(route.verb)
  const { verb, resource, subresource } = route
  return writes.has(verb) || subresourceOf(resource, subresource)?.access === 'connect'
}

/**
 * Whether a request of an audited route is left out: clients renew Leases every few seconds and record Events in bursts, which would
 * rotate everything else away. One that was refused for its sender is never left out.
 */
export function isLeftOut(route: AuditedRoute, code: number): boolean {
  if (isRefused(code) || route.kind === 'aggregated') return false
  const { group, name } = route.resource
  return (group === 'coordination.k8s.io' && name === 'leases') || name === 'events'
}

/** Refused for its sender. */
export function isRefused(code: number): boolean {
  return code === 401 || code === 403
}

/** The line, with its end. */
export function auditLine(facts: AuditFacts): string {
  const { id, stage, route, sender, uri, address, userAgent, code, body, receivedMs, tookMs } = facts
  const { identity, impersonated, decision, annotations } = sender
  const event = {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: id,
    stage,
    requestURI: uri.slice(0, longestUri),
    verb: route.verb,
    user: identity === undefined ? {} : userInfo(identity),
    ...(impersonated && { impersonatedUser: userInfo(impersonated) }),
    ...(address && { sourceIPs: [address] }),
    ...(userAgent && { userAgent: userAgent.slice(0, longestUserAgent) }),
    objectRef: objectRef(route, body),
    responseStatus: { metadata: {}, ...outcome(body), code },
    requestReceivedTimestamp: microTime(receivedMs),
    stageTimestamp: microTime(receivedMs + tookMs),
    annotations: { ...(decision && { 'authorization.k8s.io/decision': decision }), ...annotations },
  }
  return `${JSON.stringify(event)}\n`
}

function userInfo({ user, groups, uid, extra }: Identity) {
  return { username: user, ...(uid && { uid }), groups: groups.slice(0, mostGroups), ...(extra && { extra }) }
}

/** The name of an object whose name the server generated is that of the answer. */
function objectRef(route: AuditedRoute, body: unknown) {
  if (route.kind === 'aggregated') return extensionRef(route)
  const { resource, namespace, name, subresource } = route
  const { kind, metadata } = isObject(body) ? body : {}
  const made = kind === resource.kind && isObject(metadata) ? metadata : {}
  const { name: madeName, uid, resourceVersion } = made
  return {
    resource: resource.name,
    ...(namespace && { namespace }),
    ...withName(name || madeName),
    ...(typeof uid === 'string' && { uid }),
    ...(resource.group && { apiGroup: resource.group }),
    apiVersion: resource.version,
    ...(typeof resourceVersion === 'string' && { resourceVersion }),
    ...(subresource && { subresource }),
  }
}

function extensionRef({ resource, namespace, name, group, version, subresource }: AggregatedRoute) {
  return {
    resource,
    ...(namespace && { namespace }),
    ...withName(name),
    apiGroup: group,
    apiVersion: version,
    ...(subresource && { subresource }),
  }
}

function withName(name: unknown) {
  return typeof name === 'string' && name !== '' ? { name } : {}
}

function outcome(body: unknown) {
  if (!isObject(body) || body['kind'] !== 'Status') return {}
  const { status, reason } = body
  return { ...(typeof status === 'string' && { status }), ...(typeof reason === 'string' && { reason }) }
}

/** RFC 3339 with six digits after the point. */
function microTime(ms: number): string {
  const whole = Math.floor(ms)
  const micros = Math.floor((ms - whole) * 1000)
  return `${new Date(whole).toISOString().slice(0, -1)}${String(micros).padStart(3, '0')}Z`
}
