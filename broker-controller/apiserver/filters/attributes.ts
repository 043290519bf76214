/** What a request needs to be allowed, and whether it is. */
import type { Identity } from '../../../api/identity.ts'
import { nodeOf } from '../../../api/identity.ts'
import type { RequestSender } from '../audit/audit-event.ts'
import { permit } from '../authorization/authorizer.ts'
import type { AccessCheck } from '../authorization/held-access.ts'
import { impersonated } from '../authorization/impersonation.ts'
import { narrowerAttributes } from '../authorization/kubelet-paths.ts'
import type { Attributes, Authorizer } from '../handlers/authorizer.ts'
import { exactFields } from '../handlers/list-options.ts'
import { reviewKinds } from '../reviews/review-kinds.ts'
import type { ApiRoute } from '../routes.ts'
import type { ApiRequest } from './api-request.ts'

export type RequestAttributes = {
  readonly full: Attributes
  /** The kubelet's paths have a right of their own, which is narrower than the one to the whole node. */
  readonly narrower: Attributes | undefined
}

/** Throws Forbidden. */
export async function permitRequest(
  { full, narrower }: RequestAttributes,
  identity: Identity,
  access: Authorizer,
): Promise<void> {
  if (narrower !== undefined && (await access.decide(identity, narrower)).allowed) return
  await permit(access, identity, full)
}

/** Whether the identity still has the right to an answer that lasts, and its sender the right to act as this identity. */
export function rightsCheck(
  attributes: RequestAttributes,
  identity: Identity,
  { headers }: ApiRequest,
  sender: RequestSender,
  access: Authorizer,
): AccessCheck {
  const { full } = attributes
  const fields = full.kind === 'resource' ? [...full.fields] : []
  const own = sender.identity ?? identity
  return {
    key: `rights ${JSON.stringify([own, identity, { ...full, fields }, attributes.narrower])}`,
    // The rights of a node depend on its pods.
    dependsOn: nodeOf(identity) === undefined ? 'roles' : 'objects',
    async ask() {
      if (sender.impersonated !== undefined) await impersonated(own, headers, access)
      await permitRequest(attributes, identity, access)
    },
  }
}

export function attributesOf(route: ApiRoute, request: ApiRequest): RequestAttributes {
  const full = fullAttributes(route, request)
  const rest = route.kind === 'resource' ? route.rest : undefined
  const isUpgrade = request.offered !== undefined
  return { full, narrower: narrowerAttributes(full, { method: request.method, rest, isUpgrade }) }
}

function fullAttributes(route: ApiRoute, { method, query }: ApiRequest): Attributes {
  if (route.kind === 'usage' || route.kind === 'component') {
    return { ...route, kind: 'resource', fields: new Map<string, string>() }
  }
  if (route.kind === 'review') {
    const { group, name: resource } = reviewKinds[route.name]
    const { verb, namespace } = route
    return { kind: 'resource', verb, group, resource, subresource: '', namespace, name: '', fields: new Map() }
  }
  if (route.kind === 'aggregated' && route.resource !== '') return aggregatedAttributes(route)
  if (route.kind !== 'resource') return { kind: 'path', verb: method.toLowerCase(), path: route.path }
  const { verb, resource, namespace, subresource } = route
  const fields = route.name === '' ? exactFields(resource, query) : new Map<string, string>()
  const isSearch = verb === 'list' || verb === 'watch' || verb === 'deletecollection'
  const name = isSearch ? (fields.get('metadata.name') ?? '') : route.name
  // What is done with a namespace is done in it: a RoleBinding there may allow it (RequestInfoFactory.NewRequestInfo).
  const isNamespace = resource.id === 'namespaces' && !isSearch
  return {
    kind: 'resource',
    verb,
    group: resource.group,
    resource: resource.name,
    subresource,
    namespace: isNamespace ? name : namespace,
    name,
    fields,
  }
}

function aggregatedAttributes(route: Extract<ApiRoute, { readonly kind: 'aggregated' }>): Attributes {
  const { verb, group, resource, subresource, namespace, name } = route
  const isNamed = name !== '' && (verb === 'list' || verb === 'watch')
  const fields = isNamed ? [['metadata.name', name] as const] : []
  return { kind: 'resource', verb, group, resource, subresource, namespace, name, fields: new Map(fields) }
}
