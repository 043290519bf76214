/** Routes of requests for extension servers: what of a path is what, without knowing its kinds (apiserver/pkg/endpoints/request/requestinfo.go). */
import type { AggregatedRoute, Verb } from '../handlers/strategy.ts'
import { isSwitchedOn } from '../wire/query.ts'
import type { ApiServices } from './api-services.ts'

const verbs: { readonly [method: string]: Verb } = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** Undefined where no extension server answers. `names`: the decoded parts of the path. */
export function aggregatedRouteOf(
  method: string,
  names: readonly string[],
  query: URLSearchParams,
  apiServices: ApiServices | undefined,
): AggregatedRoute | undefined {
  const isDescription = names[0] === 'openapi' && names[1] === 'v3'
  const [root, group, version, ...rest] = isDescription ? names.slice(2) : names
  if (root !== 'apis' || group === undefined || version === undefined) return undefined
  const apiService = apiServices?.remoteAt({ group, version })
  if (apiService === undefined || (isDescription && rest.length > 0)) return undefined
  if (names.some((name) => name === '.' || name === '..' || /[/\0]/.test(name))) return undefined
  const path = `/${names.map(encodeURIComponent).join('/')}`
  const [resource = '', named = '', subresource = ''] = placeOf(rest)
  const verb = verbOf(method, named, query)
  const name = named === '' && (verb === 'list' || verb === 'watch') ? namedIn(query) : named
  const namespace = rest[0] === 'namespaces' ? (rest[1] ?? '') : ''
  return { kind: 'aggregated', apiService, path, verb, group, version, resource, subresource, namespace, name }
}

/** Subresources of a namespace itself. */
const ofNamespaces = ['status', 'finalize']

function placeOf(names: readonly string[]): readonly string[] {
  const [first, , third] = names
  return first === 'namespaces' && third !== undefined && !ofNamespaces.includes(third) ? names.slice(2) : names
}

function verbOf(method: string, name: string, query: URLSearchParams): Verb | '' {
  const verb = Object.hasOwn(verbs, method) ? verbs[method] : undefined
  if (verb === 'get' && name === '') return isSwitchedOn(query, 'watch') ? 'watch' : 'list'
  if (verb === 'delete' && name === '') return 'deletecollection'
  return verb ?? ''
}

/** The one name that a field selector asks for; '': any. */
function namedIn(query: URLSearchParams): string {
  const terms = (query.get('fieldSelector') ?? '').split(',')
  return terms.map((term) => /^metadata\.name==?([^=].*)$/.exec(term)?.[1]).find((name) => name !== undefined) ?? ''
}

const longSubresources = ['attach', 'exec', 'log', 'portforward', 'proxy']

/** Whether its answer has no deadline (longRunningRequestCheck of kube-apiserver). */
export function isLongAggregated({ verb, subresource }: AggregatedRoute, isUpgrade: boolean): boolean {
  return isUpgrade || verb === 'watch' || longSubresources.includes(subresource)
}
