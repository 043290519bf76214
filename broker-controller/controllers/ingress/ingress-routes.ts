/**
 * Ingresses → the tables by which the proxy finds a backend: host and path, or the beginning of a path, or the host alone. All
 * strings of users are keys of these tables, never text of the configuration, and consist of characters that a key may have.
 */
import type { HTTPIngressPath, Ingress, IngressBackend } from '../../../api/network/ingress.ts'
import { withoutEnd } from '../../../api/text/without-end.ts'
import {
  type BackendPlace,
  backendText,
  type ProxyBackend,
  proxyBackend,
  type ServiceLookup,
} from './ingress-backends.ts'
import { ingressOptions } from './ingress-options.ts'
import type { FileRoom, IngressProblem } from './ingress-problem.ts'

/** A value is `BACKEND|` or, with a redirect to HTTPS, `BACKEND|r`. */
export type RouteTables = {
  /** `HOST/PATH`; without a host `/PATH`. */
  readonly exact: ReadonlyMap<string, string>
  /** The same, with a slash at the end: the longest that a request with a slash after its path begins with counts. */
  readonly prefix: ReadonlyMap<string, string>
  /** `HOST`, or `*`: of requests that match nothing in the other tables. */
  readonly fallback: ReadonlyMap<string, string>
}

export type Routes = {
  readonly tables: RouteTables
  /** By name. */
  readonly backends: ReadonlyMap<string, ProxyBackend>
  /** Adds what the Ingress asks for, after all older ones. Returns what is wrong with it. `undefined`: there is no room for it. */
  add(ingress: Ingress): readonly IngressProblem[] | undefined
}

type Table = keyof RouteTables
type Entry = { readonly table: Table; readonly key: string; readonly value: string; readonly what: string }
type Wanted = { readonly entries: readonly Entry[]; readonly backends: readonly ProxyBackend[] }

/** The backend that answers 503. */
export const unavailableBackend = 'unavailable'
/** As a line of a file that HAProxy reads must fit into its buffer of 16 KiB, with room for the host. */
const longestPath = 4096
/** More of one Ingress are left out: each Ingress is decided in one turn of the event loop. */
const mostPaths = 1000

/** An Ingress that finds no room is left out, with all of its routes. `ipv6`: as of a `BackendPlace`. */
export function ingressRoutes(lookup: ServiceLookup, room: FileRoom, ipv6: boolean): Routes {
  const tables = {
    exact: new Map<string, string>(),
    prefix: new Map<string, string>(),
    fallback: new Map<string, string>(),
  }
  const owners = new Map<string, string>()
  const backends = new Map<string, ProxyBackend>()

  /** New entries; the first of two equal ones counts. */
  const missing = ({ entries, backends: some }: Wanted) => {
    const free = new Map<string, Entry>()
    for (const entry of entries) {
      const id = idOf(entry)
      if (!owners.has(id) && !free.has(id)) free.set(id, entry)
    }
    const needed = new Map(some.filter(({ name }) => !backends.has(name)).map((one) => [one.name, one]))
    const bytes = [
      ...[...free.values()].map(({ key, value }) => key.length + value.length + 2),
      ...[...needed.values()].map((one) => backendText(one).length),
    ]
    return { free, needed, bytes: bytes.reduce((sum, one) => sum + one, 0) }
  }

  return {
    tables,
    backends,
    add(ingress) {
      const owner = `${ingress.metadata.namespace ?? ''}/${ingress.metadata.name ?? ''}`
      const { wanted, problems } = wantedOf(ingress, lookup, ipv6)
      const conflicts = wanted.entries.flatMap((entry) => {
        const other = owners.get(idOf(entry))
        return other === undefined ? [] : [conflict(entry.what, other)]
      })
      const { free, needed, bytes } = missing(wanted)
      if (!room.take(bytes)) return undefined
      for (const [id, { table, key, value }] of free) {
        tables[table].set(key, value)
        owners.set(id, owner)
      }
      for (const [name, backend] of needed) backends.set(name, backend)
      return [...problems, ...conflicts]
    },
  }
}

function idOf({ table, key }: Entry): string {
  return `${table} ${key}`
}

function conflict(what: string, other: string): IngressProblem {
  const message = `${what} is that of Ingress ${other}, which is older: change or delete one of them`
  return { reason: 'RouteConflict', message }
}

function wantedOf(ingress: Ingress, lookup: ServiceLookup, ipv6: boolean) {
  const { metadata, spec = {} } = ingress
  const { options, problems: invalid } = ingressOptions(metadata.annotations)
  const problems: IngressProblem[] = [...invalid]
  const entries: Entry[] = []
  const backends: ProxyBackend[] = []
  const routeValue = valueReader({ namespace: metadata.namespace ?? '', options, ipv6, lookup, problems, backends })
  const { rules = [], defaultBackend } = spec
  const hosts = new Set<string>()
  for (const [index, rule] of rules.entries()) {
    const { host = '' } = rule
    if (!isHost(host)) {
      problems.push(unusable(`spec.rules[${index}].host`, 'a host is letters, digits, - and dots'))
      continue
    }
    hosts.add(host)
    if (addPaths(rule, `spec.rules[${index}]`, { entries, problems, routeValue })) continue
    const message = `The Ingress has more than ${mostPaths} paths, and the others are left out: split it`
    return { wanted: { entries, backends }, problems: [{ reason: 'TooManyPaths', message }, ...problems] }
  }
  if (defaultBackend !== undefined) {
    const value = routeValue(defaultBackend, 'spec.defaultBackend')
    entries.push(...[...(hosts.size === 0 ? [''] : hosts)].map((host) => fallbackEntry(host, value)))
  }
  return { wanted: { entries, backends }, problems }
}

type Rule = NonNullable<NonNullable<Ingress['spec']>['rules']>[number]

type PathsFound = {
  readonly entries: Entry[]
  readonly problems: IngressProblem[]
  readonly routeValue: ReturnType<typeof valueReader>
}

/** False: the Ingress has too many paths, and those that are left are not added. */
function addPaths({ host = '', http }: Rule, rule: string, { entries, problems, routeValue }: PathsFound): boolean {
  for (const [index, path] of (http?.paths ?? []).entries()) {
    if (entries.length === mostPaths) return false
    const place = `${rule}.http.paths[${index}]`
    const route = routeOf(host, path)
    if (route === undefined) {
      problems.push(unusable(`${place}.path`, `a path is at most ${longestPath} visible characters of ASCII`))
    } else entries.push({ ...route, value: routeValue(path.backend, `${place}.backend`) })
  }
  return true
}

function fallbackEntry(host: string, value: string): Entry {
  const what = host === '' ? 'The default backend of all requests' : `The default backend of host ${host}`
  return { table: 'fallback', key: host || '*', value, what }
}

type ValueNeeds = Omit<BackendPlace, 'place'> & {
  readonly lookup: ServiceLookup
  readonly problems: IngressProblem[]
  readonly backends: ProxyBackend[]
}

/** The value of a route to this backend. Adds the backend, or what is wrong with it. */
function valueReader({ namespace, options, ipv6, lookup, problems, backends }: ValueNeeds) {
  return (backend: IngressBackend, place: string): string => {
    const found = proxyBackend(backend, { namespace, options, ipv6, place }, lookup)
    if ('problem' in found) problems.push(found.problem)
    else backends.push(found.value)
    const name = 'problem' in found ? unavailableBackend : found.value.name
    return `${name}|${options.redirect ? 'r' : ''}`
  }
}

/** ImplementationSpecific is Prefix. The end of a prefix may be a slash: `/a/` is `/a`, and matches `/a`, `/a/` and `/a/b`. */
function routeOf(host: string, { path = '', pathType }: HTTPIngressPath): Omit<Entry, 'value'> | undefined {
  const given = path === '' ? '/' : path
  if (!isPath(given)) return undefined
  const where = host === '' ? 'without a host' : `of host ${host}`
  if (pathType === 'Exact') return { table: 'exact', key: `${host}${given}`, what: `Path ${given} ${where}` }
  const prefix = `${withoutEnd(given, '/')}/`
  return { table: 'prefix', key: `${host}${prefix}`, what: `Path ${given} ${where}` }
}

function unusable(place: string, expected: string): IngressProblem {
  return { reason: 'InvalidRoute', message: `${place} is left out: ${expected}. Change it` }
}

/** '' for all hosts, a name, or `*.` and a name. */
export function isHost(host: string): boolean {
  return host === '' || (host.length <= 253 && /^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(host))
}

function isPath(path: string): boolean {
  return path.length <= longestPath && /^\/[!-~]*$/.test(path)
}
