/** What does this method on this path ask for? */
import { type Resource, resources } from '../../api/resources.ts'
import { type UsageRoute, usageRouteOf } from './figures/usage-routes.ts'

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

export type ResourceRoute = {
  readonly kind: 'resource'
  readonly verb: Verb
  readonly resource: Resource
  /** '' for cluster-wide kinds, and for lists over all namespaces. */
  readonly namespace: string
  /** '' where the request is about a collection. */
  readonly name: string
  /** '' for the object itself. */
  readonly subresource: string
}

export type Route =
  | ResourceRoute
  | UsageRoute
  /** Anything that is no object: /version, /healthz, discovery. */
  | { readonly kind: 'path'; readonly verb: string; readonly path: string }
  | { readonly kind: 'not-allowed'; readonly path: string }

/** Reads a path as it stands in the request line, without its query. Names may hold any percent-encoded character. */
export function routeOf(method: string, path: string, query: URLSearchParams): Route {
  const segments = path.split('/').filter((segment) => segment !== '')
  const names = segments.map(decoded)
  const usage = usageRouteOf(method, names)
  if (usage !== undefined) return usage === 'not-allowed' ? { kind: usage, path } : usage
  const place = placeOf(names)
  if (place === undefined) return { kind: 'path', verb: pathVerb(method), path }
  const verb = verbOf(method, place.name !== '', query)
  if (verb === undefined || !isAllowed(verb, place)) return { kind: 'not-allowed', path }
  return { kind: 'resource', verb, ...place }
}

/** `?watch`, `?watch=1` and `?watch=true` say yes, as Kubernetes reads a switch in a query. */
export function isSwitchedOn(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== 'false' && value !== '0'
}

type Place = Pick<ResourceRoute, 'resource' | 'namespace' | 'name' | 'subresource'>

/** Undefined where no kind of ours lives. */
function placeOf(segments: readonly string[]): Place | undefined {
  const [root, ...rest] = segments
  if (root === 'api') return placeIn('', rest)
  if (root === 'apis' && rest[0] !== undefined) return placeIn(rest[0], rest.slice(1))
  return undefined
}

function placeIn(group: string, [version, ...rest]: readonly string[]): Place | undefined {
  const [first, second, third] = rest
  // /namespaces/NS/pods is inside a namespace; /namespaces/NS and /namespaces/NS/status are about one.
  const inside = first === 'namespaces' && third !== undefined && find(group, version, third)?.namespaced
  const [plural, name = '', subresource = '', ...more] = inside ? rest.slice(2) : rest
  const resource = find(group, version, plural)
  if (resource === undefined || more.length > 0) return undefined
  if (subresource !== '' && !resource.subresources.includes(subresource)) return undefined
  if (!inside && resource.namespaced && name !== '') return undefined
  return { resource, namespace: inside ? (second ?? '') : '', name, subresource }
}

function find(group: string, version: string | undefined, plural: string | undefined): Resource | undefined {
  return Object.values(resources).find(
    (resource) => resource.group === group && resource.version === version && resource.name === plural,
  )
}

function verbOf(method: string, named: boolean, query: URLSearchParams): Verb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (named) return 'get'
      return isSwitchedOn(query, 'watch') ? 'watch' : 'list'
    case 'POST':
      return 'create'
    case 'PUT':
      return named ? 'update' : undefined
    case 'PATCH':
      return named ? 'patch' : undefined
    case 'DELETE':
      return named ? 'delete' : 'deletecollection'
    default:
      return undefined
  }
}

function isAllowed(verb: Verb, { resource, namespace, name, subresource }: Place): boolean {
  if (isErrand(subresource)) return verb === 'create'
  if (subresource !== '') return verb === 'get' || verb === 'update' || verb === 'patch'
  if (verb === 'create' && name !== '') return false
  const acrossNamespaces = resource.namespaced && namespace === ''
  return !acrossNamespaces || verb === 'list' || verb === 'watch'
}

/** A subresource that is no part of the object, but something to be done with it: it is only ever created. */
export function isErrand(subresource: string): boolean {
  return subresource === 'binding' || subresource === 'eviction' || subresource === 'checkpoint'
}

function pathVerb(method: string): string {
  return method === 'HEAD' ? 'get' : method.toLowerCase()
}

/** A name that is no valid encoding stays as it is, and is then not found. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
