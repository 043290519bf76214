/**
 * What browsers can show of a client: they cannot set headers of a WebSocket, so a token comes as a subprotocol
 * (staging/src/k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go).
 */
import { ApiError } from '../../../api/api-error.ts'
import type { OfferedProtocols } from '../handlers/strategy.ts'

const tokenPrefix = 'base64url.bearer.authorization.k8s.io.'

export type OfferedToken = {
  readonly token: string | undefined
  /** Without the token: it is never echoed, and reaches no handler. */
  readonly offered: OfferedProtocols
}

/** Throws Unauthorized for a token that cannot be read, or without another subprotocol that can be answered. */
export function offeredToken(offered: OfferedProtocols): OfferedToken {
  if (offered.upgrade !== 'websocket') return { token: undefined, offered }
  const encoded = offered.protocols.filter((one) => one.startsWith(tokenPrefix))
  const [first, second] = encoded
  if (first === undefined) return { token: undefined, offered }
  if (second !== undefined) throw unauthorized('multiple base64.bearer.authorization tokens specified')
  const token = decoded(first.slice(tokenPrefix.length))
  const protocols = offered.protocols.filter((one) => one !== first)
  if (token !== '' && protocols.length === 0) throw unauthorized('missing additional subprotocol')
  return { token: token === '' ? undefined : token, offered: { ...offered, protocols } }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decoded(text: string): string {
  // Node.js decodes what it can and ignores the rest.
  if (!/^[\w-]*$/.test(text) || text.length % 4 === 1)
    throw unauthorized('invalid base64.bearer.authorization token encoding')
  try {
    return utf8.decode(Buffer.from(text, 'base64url'))
  } catch {
    throw unauthorized('invalid base64.bearer.authorization token')
  }
}

function unauthorized(message: string): ApiError {
  return new ApiError('Unauthorized', message)
}

export type BrowserRequest = {
  readonly headers: { readonly [lowerCaseName: string]: string | readonly string[] | undefined }
  readonly offered: OfferedProtocols | undefined
  /** The request carries a token of its own. */
  readonly hasToken: boolean
}

/**
 * Throws Forbidden where a page of another site opens a WebSocket without a token: the browser adds the user's certificate to it,
 * and no rule of the browser keeps the page from reading what comes. `Sec-Fetch-Site` cannot be set by pages (Fetch Metadata).
 */
export function refuseForeignPage({ headers, offered, hasToken }: BrowserRequest): void {
  const site = headers['sec-fetch-site']
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  if (offered?.upgrade !== 'websocket' || hasToken || !isForeign) return
  throw new ApiError('Forbidden', 'a WebSocket of a page of another site needs a bearer token')
}
