/** Common parts of the handlers of verbs: the object of a path, and the form of its answer. */
import { ApiError, notFound } from '../../../api/api-error.ts'
import { clipped } from '../../../api/problem.ts'
import type { Resource } from '../../../api/resources.ts'
import type { Facts } from '../../../daemon/log.ts'
import type { AnyStored, ObjectKey } from '../../store/store.ts'
import { answerForm, watchForm } from '../wire/content-negotiation.ts'
import type { RepresentationOptions } from './representation.ts'
import type { ResourceNeeds, ResourceRequest, ResourceRoute } from './strategy.ts'

/** Logs what a client can cause again and again; the key names the client. */
export function warnLimited({ log, limited }: ResourceNeeds, key: string, message: string, facts: Facts): void {
  if (limited === undefined) log.warn(message, facts)
  else limited.warn(key, message, facts)
}

export function keyOfRoute({ namespace, name }: ResourceRoute): ObjectKey {
  return { namespace, name }
}

/** The object the path names. Throws NotFound. */
export async function presentObject({ route }: ResourceRequest, { store }: ResourceNeeds): Promise<AnyStored> {
  const object = await store.get(route.resource.id, keyOfRoute(route))
  if (object === undefined) throw notFound(route.resource, route.name)
  return object
}

/** The form of the answer that the client accepts. */
export function representationOptions(
  { route, accept, query }: ResourceRequest,
  { clock }: ResourceNeeds,
): RepresentationOptions {
  const asked = query.get('includeObject')
  const includeObject = asked === 'Object' || asked === 'None' ? asked : 'Metadata'
  const form = route.verb === 'watch' ? watchForm(accept) : answerForm(accept)
  return { form, includeObject, nowMs: clock.wallMs() }
}

/** 403 for a user who has the permission in general, but not for this object. */
export function forbid(
  { name: kind, group }: Pick<Resource, 'name' | 'group'>,
  name: string,
  because: string,
  longest = 1024,
): ApiError {
  const what = group === '' ? kind : `${kind}.${group}`
  const short = clipped(because, longest)
  const details = { ...(name !== '' && { name }), ...(group !== '' && { group }), kind }
  return new ApiError('Forbidden', `${what} "${name}" is forbidden: ${short}`, details)
}
