/** Routes requests: method and path → verb, resource and subresource. */
import { type ReleaseFile, releaseFileOf } from '../../api/node/release-paths.ts'
import { sessionOfPath } from '../../api/sessions.ts'
import { aggregatedRouteOf } from './aggregator/aggregated-route.ts'
import type { ApiServices } from './aggregator/api-services.ts'
import { isDashboardPath } from './browser-sessions/dashboard-paths.ts'
import { type ComponentRoute, componentRouteOf } from './figures/component-routes.ts'
import { type UsageRoute, usageRouteOf } from './figures/usage-routes.ts'
import { type AggregatedRoute, type KindRegistry, type ResourceRoute, subresourceOf } from './handlers/strategy.ts'
import { type ReviewRoute, reviewRouteOf } from './reviews/review-kinds.ts'
import { isSwitchedOn } from './wire/query.ts'

export type ApiRoute =
  | ResourceRoute
  | UsageRoute
  | ComponentRoute
  | ReviewRoute
  | AggregatedRoute
  /** The node's end of a session; see `api/sessions.ts`. */
  | { readonly kind: 'session'; readonly path: string; readonly id: string }
  /** A file of a release of the agent. */
  | { readonly kind: 'release'; readonly path: string; readonly wanted: ReleaseFile }
  /** The page of the fleet, and what it asks. */
  | { readonly kind: 'dashboard'; readonly path: string }
  /** Anything that is not an object: /version, /healthz, discovery. */
  | { readonly kind: 'path'; readonly verb: string; readonly path: string }
  | { readonly kind: 'not-allowed'; readonly path: string }

/** Reads a path as it stands in the request line, without its query. Names may hold any percent-encoded character. */
export function routeOf(
  method: string,
  path: string,
  query: URLSearchParams,
  kinds: KindRegistry,
  apiServices?: ApiServices,
): ApiRoute {
  const own = ownRouteOf(method, path)
  if (own !== undefined) return own
  const names = path
    .split('/')
    .filter((segment) => segment !== '')
    .map(decoded)
  const special =
    aggregatedRouteOf(method, names, query, apiServices) ??
    usageRouteOf(method, names) ??
    componentRouteOf(method, names) ??
    reviewRouteOf(method, names)
  if (special !== undefined) return special === 'not-allowed' ? { kind: special, path } : special
  const place = placeOf(names, kinds)
  if (place === undefined) return { kind: 'path', verb: pathVerb(method), path: withoutEndSlash(path) }
  const verb = verbOf(method, place.name !== '', query)
  if (verb === undefined || !isAllowed(verb, place)) return { kind: 'not-allowed', path }
  const { depth, ...named } = place
  const isProxy = subresourceOf(place.resource, place.subresource)?.access === 'proxy'
  return { kind: 'resource', verb, ...named, ...(isProxy && { rest: pathBehind(path, depth) }) }
}

/** What is not of the Kubernetes API. */
function ownRouteOf(method: string, path: string): ApiRoute | undefined {
  const id = sessionOfPath(path)
  if (id !== undefined) return method === 'GET' ? { kind: 'session', path, id } : { kind: 'not-allowed', path }
  const wanted = releaseFileOf(path)
  if (wanted !== undefined) return method === 'GET' ? { kind: 'release', path, wanted } : { kind: 'not-allowed', path }
  return isDashboardPath(path) ? { kind: 'dashboard', path } : undefined
}

/** What follows so many names of a path, with its slashes. */
function pathBehind(path: string, names: number): string {
  return path.replace(new RegExp(`^(?:/+[^/]+){${names}}`), '')
}

/** `depth`: the names of the path that lead to it. */
type Place = Pick<ResourceRoute, 'resource' | 'namespace' | 'name' | 'subresource'> & { readonly depth: number }

/** Undefined where no kind is served. */
function placeOf(segments: readonly string[], kinds: KindRegistry): Place | undefined {
  const [root, ...rest] = segments
  if (root === 'api') return placeIn('', rest, kinds)
  if (root === 'apis' && rest[0] !== undefined) return placeIn(rest[0], rest.slice(1), kinds)
  return undefined
}

function placeIn(group: string, [version = '', ...rest]: readonly string[], kinds: KindRegistry): Place | undefined {
  const [first, second, third] = rest
  // /namespaces/NS/pods is inside a namespace; /namespaces/NS and /namespaces/NS/status are about one.
  const inside = first === 'namespaces' && third !== undefined && kinds.at(group, version, third)?.namespaced
  const [plural = '', name = '', subresource = '', ...more] = inside ? rest.slice(2) : rest
  const resource = kinds.at(group, version, plural)
  if (resource === undefined) return undefined
  const row = subresourceOf(resource, subresource)
  if ((subresource !== '' && row === undefined) || (more.length > 0 && row?.access !== 'proxy')) return undefined
  if (!inside && resource.namespaced && name !== '') return undefined
  const depth = (group === '' ? 2 : 3) + (inside ? 2 : 0) + 3
  return { resource, namespace: inside ? (second ?? '') : '', name, subresource, depth }
}

function verbOf(method: string, named: boolean, query: URLSearchParams): ResourceRoute['verb'] | undefined {
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
    case 'OPTIONS':
      return ''
    default:
      return undefined
  }
}

function isAllowed(verb: ResourceRoute['verb'], { resource, namespace, name, subresource }: Place): boolean {
  switch (subresourceOf(resource, subresource)?.access) {
    case 'create':
      return verb === 'create'
    case 'get':
      return verb === 'get'
    case 'connect':
      return verb === 'get' || verb === 'create'
    case 'proxy':
      return true
  }
  if (verb === '') return false
  if (subresource !== '') return verb === 'get' || verb === 'update' || verb === 'patch'
  if (verb === 'create' && name !== '') return false
  if (verb === 'deletecollection' && resource.hasNoCollectionDeletion) return false
  const acrossNamespaces = resource.namespaced && namespace === ''
  return !acrossNamespaces || verb === 'list' || verb === 'watch'
}

/** `/version/` is `/version`: older Go clients append the slash. */
function withoutEndSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

function pathVerb(method: string): string {
  return method === 'HEAD' ? 'get' : method.toLowerCase()
}

/** A name with an invalid encoding stays as it is, and is then not found. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
