/** The headers of a proxied request and of its answer (k8s.io/apimachinery/pkg/util/proxy; net/http/httputil, ReverseProxy). */

/** With which one controller passes on to another one who sent a request. */
export const identityHeader = 'x-bramble-identity'

/** Names and values in turn, as on the wire. */
export type RawHeaders = readonly string[]

/** Headers that apply to one connection only (RFC 9110, 7.6.1; RFC 2616, 13.5.1). */
const hopByHop = [
  'connection',
  'proxy-connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
/** They are meant for the API: what is behind the proxy must not get the credentials of its clients. */
const forTheApi = (name: string) =>
  ['authorization', 'expect', identityHeader].includes(name) || name.startsWith('impersonate-')
/** Cookies of the API's own pages: only a browser that logs in to the API has them, and only for the API. */
const ownCookie = /^\s*__Host-bramble-/
/** What a browser keeps for the whole origin, which is that of the API and of the dashboard: a page behind the proxy is one path of it. */
const originWide = [
  'service-worker-allowed',
  'clear-site-data',
  'strict-transport-security',
  'alt-svc',
  'report-to',
  'nel',
  'public-key-pins',
]
/** A token that a browser sends with a WebSocket. */
const bearerProtocol = /^base64url\.bearer\.authorization\.k8s\.io\./

export type ForwardedRequest = {
  readonly method: string
  readonly headers: RawHeaders
  /** The other end of the client's connection. */
  readonly address: string | undefined
  /** The path as the client wrote it. */
  readonly uri: string
  readonly isUpgrade: boolean
  /** The server behind is a controller of the fleet: it gets the cookies of the API's own pages, too. */
  readonly toController?: boolean
}

/** What the server behind the proxy gets. The request has a body of a known length, one in chunks, or none. */
export function requestHeaders({ method, headers, address, uri, isUpgrade, toController }: ForwardedRequest): string[] {
  const all = pairsOf(headers)
  const firstOf = (name: string) => all.find(([one]) => one.toLowerCase() === name)?.[1]
  const isChunked = firstOf('transfer-encoding') !== undefined
  const hasLength = firstOf('content-length') !== undefined
  const dropped = new Set([
    ...hopByHop,
    ...namedIn(all),
    'x-forwarded-for',
    'x-forwarded-uri',
    'sec-websocket-protocol',
  ])
  // Without its length the server would read the body as another request, of any method. An upgrade is passed on without a body.
  if (isUpgrade) dropped.add('content-length')
  else dropped.delete('content-length')
  // Links of a page are rewritten, and those of a compressed one could not be without expanding all that a pod sends.
  if (!toController && firstOf('accept')?.includes('text/html')) dropped.add('accept-encoding')
  const kept = all
    .filter(([name]) => !dropped.has(name.toLowerCase()) && !forTheApi(name.toLowerCase()))
    .flatMap(([name, value]) =>
      name.toLowerCase() === 'cookie' && !toController ? foreignCookies(name, value) : [[name, value] as const],
    )
  const through = [firstOf('x-forwarded-for'), address].filter((one) => one !== undefined && one !== '')
  const protocols = protocolsOf(all)
  const bodyless = ['GET', 'HEAD', 'DELETE', 'OPTIONS'].includes(method)
  return [
    ...kept.flat(),
    ...(protocols === '' ? [] : ['Sec-WebSocket-Protocol', protocols]),
    ...(through.length > 0 ? ['X-Forwarded-For', through.join(', ')] : []),
    'X-Forwarded-Uri',
    uri,
    ...(isUpgrade ? ['Connection', 'Upgrade', 'Upgrade', firstOf('upgrade') ?? ''] : ['Connection', 'close']),
    ...(isChunked && !isUpgrade ? ['Transfer-Encoding', 'chunked'] : []),
    ...(isChunked || hasLength || bodyless ? [] : ['Content-Length', '0']),
  ]
}

/** What the client gets of the answer. `rewrite`: for the header Location; `ofController`: the answer is of a controller of the fleet. */
export function answerHeaders(
  headers: RawHeaders,
  rewrite: (location: string) => string,
  ofController = false,
): string[] {
  const all = pairsOf(headers)
  const dropped = new Set([...hopByHop, ...namedIn(all)])
  const kept = all.filter(([name]) => !dropped.has(name.toLowerCase()))
  const passed = ofController ? kept : withinPath(kept, rewrite)
  return passed.flatMap(([name, value]) => [name, isNamed(name, 'location') ? rewrite(value) : value])
}

/** The same of an answer that upgrades the connection: the headers of the connection stay. */
export function upgradeHeaders(headers: RawHeaders, rewrite: (path: string) => string, ofController = false): string[] {
  const all = pairsOf(headers)
  return (ofController ? all : withinPath(all, rewrite)).flat()
}

type Pairs = readonly (readonly [string, string])[]

/** Without what would reach beyond the path of the proxy in a browser; cookies are for this path. */
function withinPath(pairs: Pairs, rewrite: (path: string) => string): Pairs {
  return pairs
    .filter(([name, value]) => !originWide.includes(name.toLowerCase()) && !setsOwnCookie(name, value))
    .map(([name, value]) => [name, isNamed(name, 'set-cookie') ? cookieWithin(value, rewrite) : value])
}

/** RFC 6265, 5.2: without a path that begins with a slash a cookie is for the folder of the page, without a domain for its host. */
function cookieWithin(cookie: string, rewrite: (path: string) => string): string {
  const [pair = '', ...attributes] = cookie.split(';')
  const kept = attributes.flatMap((attribute) => {
    const at = `${attribute}=`.indexOf('=')
    const [name, value] = [attribute.slice(0, at).trim(), attribute.slice(at + 1).trim()] as const
    if (isNamed(name, 'domain')) return []
    return [isNamed(name, 'path') && value.startsWith('/') ? ` Path=${rewrite(value)}` : attribute]
  })
  return [pair, ...kept].join(';')
}

function isNamed(name: string, wanted: string): boolean {
  return name.toLowerCase() === wanted
}

function foreignCookies(name: string, value: string): (readonly [string, string])[] {
  const kept = value.split(';').filter((pair) => !ownCookie.test(pair))
  return kept.length === 0 ? [] : [[name, kept.join(';').trim()]]
}

function setsOwnCookie(name: string, value: string): boolean {
  return isNamed(name, 'set-cookie') && ownCookie.test(value)
}

/**
 * A redirect to the same server leads through the proxy. `prefix`: the path of the proxy; `hosts`: names under which the server
 * behind it may think of itself (Transport.rewriteURL).
 */
export function rewrittenLocation(location: string, prefix: string, hosts: readonly string[]): string {
  const [, scheme, host, rest = ''] = /^(?:([a-z][a-z0-9+.-]*:)?\/\/([^/?#]*))?(.*)$/is.exec(location) ?? []
  const isElsewhere = host !== undefined && host !== '' && !hosts.includes(host)
  const isOtherScheme = scheme !== undefined && !/^https?:$/i.test(scheme)
  const isRelative = !rest.startsWith('/')
  if (isElsewhere || isOtherScheme || isRelative) return location
  const [, path = '', query = ''] = /^([^?#]*)(.*)$/s.exec(rest) ?? []
  if (path === prefix || path.startsWith(`${prefix}/`)) return `${path}${query}`
  return `${prefix}${path}${query}`
}

function pairsOf(headers: RawHeaders): (readonly [string, string])[] {
  return Array.from({ length: headers.length / 2 }, (_, i) => [headers[2 * i] ?? '', headers[2 * i + 1] ?? ''] as const)
}

/** Headers that Connection names. */
function namedIn(all: readonly (readonly [string, string])[]): string[] {
  const values = all.flatMap(([name, value]) => (name.toLowerCase() === 'connection' ? value.split(',') : []))
  return values.map((value) => value.trim().toLowerCase()).filter((name) => name !== '')
}

function protocolsOf(all: readonly (readonly [string, string])[]): string {
  return all
    .filter(([name]) => name.toLowerCase() === 'sec-websocket-protocol')
    .flatMap(([, value]) => value.split(','))
    .map((one) => one.trim())
    .filter((one) => one !== '' && !bearerProtocol.test(one))
    .join(', ')
}
