/** A permitted request about objects, and what answering it takes. */
import { ApiError, notFound } from '../../../api/api-error.ts'
import type { Identity } from '../../../api/identity.ts'
import { clipped } from '../../../api/problem.ts'
import type { Resource } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Facts, Log } from '../../../daemon/log.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { CheckpointWindow } from '../../store/checkpoint-window.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import type { ObjectKey, Store, StoreOrigin } from '../../store/store.ts'
import type { ResourceRoute } from '../routes.ts'
import { answerForm } from '../wire/content-negotiation.ts'
import type { Wish } from './representation.ts'
import type { AnyStored } from './watch.ts'

export type ResourceRequest = {
  readonly route: ResourceRoute
  readonly identity: Identity
  readonly query: URLSearchParams
  readonly accept: string | undefined
  readonly contentType: string | undefined
  readonly readBody: () => Promise<Buffer>
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

export type ResourceNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  /** For lines that a client can cause; undefined: they are not limited. */
  readonly limited?: LimitedLog
  readonly random: () => number
  readonly parseYaml: (text: string) => unknown
  /** Whom a certificate request (PEM) names; undefined when it cannot be read. */
  readonly commonNameOf: (request: string) => string | undefined
  /** Which store this is; undefined: one that never takes checkpoints of nodes. */
  readonly origin?: StoreOrigin
  /** Are checkpoints of nodes accepted? undefined: no. */
  readonly checkpoints?: Pick<CheckpointWindow, 'isOpen'>
}

/** Logs what a client can cause again and again; the key names the client. */
export function warnLimited({ log, limited }: ResourceNeeds, key: string, message: string, facts: Facts): void {
  if (limited === undefined) log.warn(message, facts)
  else limited.warn(key, message, facts)
}

export function keyOf({ namespace, name }: ResourceRoute): ObjectKey {
  return { namespace, name }
}

/** The object the path names. Throws NotFound. */
export async function presentObject({ route }: ResourceRequest, { store }: ResourceNeeds): Promise<AnyStored> {
  const object = await store.get(route.resource.name, keyOf(route))
  if (object === undefined) throw notFound(route.resource, route.name)
  return object
}

/** How the client wants to read the answer. */
export function wishOf({ accept, query }: ResourceRequest, { clock }: ResourceNeeds): Wish {
  const asked = query.get('includeObject')
  const includeObject = asked === 'Object' || asked === 'None' ? asked : 'Metadata'
  return { form: answerForm(accept), includeObject, nowMs: clock.wallMs() }
}

/** 403 for one who may do such things in general, but not this one. */
export function forbid({ name: kind, group }: Resource, name: string, because: string): ApiError {
  const what = group === '' ? kind : `${kind}.${group}`
  const short = clipped(because, 1024)
  const details = { ...(name !== '' && { name }), ...(group !== '' && { group }), kind }
  return new ApiError('Forbidden', `${what} "${name}" is forbidden: ${short}`, details)
}
