/** The query of a list or a watch: which objects, and from which version. */
import { ApiError } from '../../../api/api-error.ts'
import { forbidden, invalid, invalidObject, notSupported, type Problem } from '../../../api/problem.ts'
import {
  fieldMatcher,
  labelMatcher,
  type Parsed,
  parseFieldSelector,
  parseLabelSelector,
} from '../../../api/selectors.ts'
import type { AnyStored } from '../../store/store.ts'
import { isSwitchedOn } from '../wire/query.ts'
import type { KindStrategy } from './strategy.ts'

export type Selection = { readonly matches: (object: AnyStored) => boolean; readonly isEverything: boolean }

type Selectable = Pick<KindStrategy, 'selectableFields' | 'form'>

const everything: Selection = { isEverything: true, matches: () => true }

/** Labels and fields that the query asks for. BadRequest where it cannot be understood. */
export function selectionOf({ selectableFields, form }: Selectable, query: URLSearchParams): Selection {
  const labels = understood(parseLabelSelector(query.get('labelSelector') ?? ''))
  const fields = understood(parseFieldSelector(selectableFields, query.get('fieldSelector') ?? ''))
  if (labels.length === 0 && fields.length === 0) return everything
  const stored = fields.map((one) => ({ ...one, field: form?.fields[one.field] ?? one.field }))
  const [hasLabels, hasFields] = [labelMatcher(labels), fieldMatcher(stored)]
  return {
    isEverything: false,
    matches: (object) => hasLabels(object.metadata.labels) && hasFields(object),
  }
}

/** The fields that the selector compares for equality: authorization can depend on them. */
export function exactFields({ selectableFields }: Selectable, query: URLSearchParams): ReadonlyMap<string, string> {
  const fields = understood(parseFieldSelector(selectableFields, query.get('fieldSelector') ?? ''))
  return new Map(fields.filter(({ equal }) => equal).map(({ field, value }) => [field, value]))
}

function understood<T>(parsed: Parsed<T>): T {
  if (parsed.ok) return parsed.value
  throw new ApiError('BadRequest', parsed.problem)
}

export type Page = {
  /** 0: no limit. */
  readonly limit: number
  /** Where the page before this one ended. */
  readonly after: Continue | undefined
}

/**
 * The last object of a page, and the list that it is a page of: the version when the first page was given, and that
 * time. `version` is '' after the list has expired: the next page begins a list of its own.
 */
export type Continue = {
  readonly version: string
  readonly sinceMs: number
  readonly namespace: string
  readonly name: string
}

/** After five minutes etcd compacts the versions of a Kubernetes API server, and its lists expire (--etcd-compaction-interval). */
const longestListMs = 5 * 60_000

/** Which page the query asks for. BadRequest where it cannot be understood, Expired where the first page is too old. */
export function pageOf(query: URLSearchParams, nowMs: number): Page {
  // A negative limit does not count (GetList in apiserver, storage/etcd3/store.go).
  const limit = Math.max(integerIn(query, 'limit'), 0)
  const token = query.get('continue')
  if (!token) return { limit, after: undefined }
  if (!['', '0'].includes(query.get('resourceVersion') ?? '')) {
    throw new ApiError('BadRequest', 'specifying resource version is not allowed when using continue')
  }
  const after = parseContinue(token)
  const isExpired = after.version !== '' && Math.abs(nowMs - after.sinceMs) > longestListMs
  if (isExpired) throw expiredList({ ...after, version: '' })
  return { limit, after }
}

/** A number of the query; 0 where it is missing. Throws BadRequest where it is not a number. */
function integerIn(query: URLSearchParams, name: string): number {
  const text = query.get(name) || '0'
  if (!/^[+-]?\d{1,18}$/.test(text)) throw new ApiError('BadRequest', `${name}: must be an integer`)
  return Number(text)
}

/** Throws Invalid for options of a list that contradict each other (ValidateListOptions in meta/internalversion/validation). */
export function refuseListOptions(query: URLSearchParams): void {
  const problems: Problem[] = []
  const field = 'resourceVersionMatch'
  const match = query.get(field) ?? ''
  const version = query.get('resourceVersion') ?? ''
  if (match !== '') {
    const supported = ['Exact', 'NotOlderThan', '']
    if (version === '') problems.push(forbidden(field, `${field} is forbidden unless resourceVersion is provided`))
    if (query.get('continue')) problems.push(forbidden(field, `${field} is forbidden when continue is provided`))
    if (!supported.includes(match)) problems.push(notSupported(field, match, supported))
    if (match === 'Exact' && version === '0') {
      problems.push(forbidden(field, `${field} "exact" is forbidden for resourceVersion "0"`))
    }
  }
  if (query.get('sendInitialEvents') !== null) {
    problems.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  if (problems.length > 0) throw invalidOptions(problems)
}

function expiredList(after: Continue): ApiError {
  const message =
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the ' +
    'continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with ' +
    'the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the ' +
    'first chunk was returned and now may show up in the list.'
  return new ApiError('Expired', message, undefined, { continueToken: formatContinue(after) })
}

function formatContinue({ version, sinceMs, namespace, name }: Continue): string {
  return Buffer.from(JSON.stringify([version, sinceMs, namespace, name])).toString('base64url')
}

function parseContinue(token: string): Continue {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    if (Array.isArray(parts)) {
      const [version, sinceMs, namespace, name]: unknown[] = parts
      const isName = typeof namespace === 'string' && typeof name === 'string'
      if (typeof version === 'string' && /^\d*$/.test(version) && Number.isFinite(sinceMs) && isName) {
        return { version, sinceMs: Number(sinceMs), namespace, name }
      }
    }
  } catch {
    // The error follows.
  }
  throw new ApiError('BadRequest', 'continue key is not valid')
}

export type PagedList = {
  readonly items: readonly AnyStored[]
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    readonly remainingItemCount?: number
  }
}

/**
 * One page of the present objects. All pages carry the version of the first, so a watch from there also delivers
 * what changed while they were read.
 */
export function pageOfList(
  items: readonly AnyStored[],
  { resourceVersion, nowMs }: { readonly resourceVersion: string; readonly nowMs: number },
  { limit, after }: Page,
  isEverything: boolean,
): PagedList {
  const goesOn = after !== undefined && after.version !== ''
  const { version, sinceMs } = goesOn ? after : { version: resourceVersion, sinceMs: nowMs }
  const rest = after === undefined ? items : items.filter((object) => byPlace(object, { metadata: after }) > 0)
  if (limit === 0 || rest.length <= limit) return { items: rest, metadata: { resourceVersion: version } }
  const page = [...rest].sort(byPlace).slice(0, limit)
  const { namespace = '', name = '' } = page.at(-1)?.metadata ?? {}
  return {
    items: page,
    metadata: {
      resourceVersion: version,
      continue: formatContinue({ version, sinceMs, namespace, name }),
      // With a selector Kubernetes cannot count what is left, and leaves the field out.
      ...(isEverything && { remainingItemCount: rest.length - limit }),
    },
  }
}

type Placed = { readonly metadata: { readonly namespace?: string; readonly name?: string } }

function byPlace(a: Placed, b: Placed): number {
  return (
    compare(a.metadata.namespace ?? '', b.metadata.namespace ?? '') ||
    compare(a.metadata.name ?? '', b.metadata.name ?? '')
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export type WatchStart = {
  /** Undefined: begin with the present objects. */
  readonly from: string | undefined
  readonly bookmarks: boolean
  readonly markInitialEnd: boolean
  readonly timeoutMs: number | undefined
}

/** From where, and for how long, a watch is asked for. `latest` is the store's version: a watch can begin now. */
export function watchStart(query: URLSearchParams, latest: string): WatchStart {
  const version = query.get('resourceVersion') ?? ''
  if (!/^\d*$/.test(version))
    throw invalidOptions([invalid('resourceVersion', version, 'must be a version from this server')])
  const bookmarks = isSwitchedOn(query, 'allowWatchBookmarks')
  const asked = query.get('sendInitialEvents')
  const initial = isSwitchedOn(query, 'sendInitialEvents')
  const match = query.get('resourceVersionMatch') ?? ''
  refuseWatchOptions({ asked, match, token: query.get('continue') ?? '' })
  const fromNothing = version === '' || version === '0'
  const seconds = integerIn(query, 'timeoutSeconds')
  // A watch from nothing is one with its initial events (SetListOptionsDefaults, apimachinery, meta/internalversion/defaults.go).
  const isFromStart = initial || (fromNothing && asked === null)
  return {
    from: isFromStart ? undefined : fromNothing ? latest : version,
    bookmarks,
    markInitialEnd: isFromStart && bookmarks,
    timeoutMs: seconds > 0 ? seconds * 1000 : undefined,
  }
}

type InitialEvents = { readonly asked: string | null; readonly match: string; readonly token: string }

/** Throws Invalid (validateWatchOptions in meta/internalversion/validation). */
function refuseWatchOptions({ asked, match, token }: InitialEvents): void {
  const problems: Problem[] = []
  const field = 'resourceVersionMatch'
  const supported = 'NotOlderThan'
  if (asked !== null && match !== supported) {
    problems.push(forbidden(field, `sendInitialEvents requires setting ${field} to ${supported}`))
  }
  if (match !== '') {
    if (asked === null) {
      problems.push(forbidden(field, `${field} is forbidden for watch unless sendInitialEvents is provided`))
    }
    if (match !== supported) problems.push(notSupported(field, match, [supported]))
    if (token !== '') problems.push(forbidden(field, `${field} is forbidden when continue is provided`))
  }
  if (problems.length > 0) throw invalidOptions(problems)
}

function invalidOptions(problems: readonly Problem[]): ApiError {
  return invalidObject({ kind: 'ListOptions', group: 'meta.k8s.io' }, '', problems)
}
