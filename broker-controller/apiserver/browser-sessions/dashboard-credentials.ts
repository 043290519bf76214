/** The session cookie of a request, and the protection of requests that carry one against pages of other sites. */
import { ApiError } from '../../../api/api-error.ts'
import type { OfferedProtocols } from '../handlers/strategy.ts'
import { sessionLifeMs } from './dashboard-sessions.ts'

/** Browsers take a cookie with this prefix only if it is Secure, of this very host and of the whole of it (RFC 6265bis). */
const cookieName = '__Host-bramble-session'
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Strict'

export type BrowserHeaders = { readonly [lowerCaseName: string]: string | readonly string[] | undefined }

/** The value of the session cookie; undefined: there is none. */
export function sessionCookie(headers: BrowserHeaders): string | undefined {
  const pairs = [headers['cookie'] ?? []].flat().flatMap((line) => line.split(';'))
  const found = pairs.map((pair) => pair.trim()).find((pair) => pair.startsWith(`${cookieName}=`))
  return found?.slice(cookieName.length + 1)
}

/** The header Set-Cookie that begins a session. */
export function openingCookie(secret: string): string {
  return `${cookieName}=${secret}; Max-Age=${sessionLifeMs / 1000}; ${attributes}`
}

/** The header Set-Cookie that removes the cookie. */
export const closingCookie = `${cookieName}=; Max-Age=0; ${attributes}`

export type CookieRequest = {
  readonly method: string
  readonly headers: BrowserHeaders
  readonly offered: OfferedProtocols | undefined
}

/**
 * Throws Forbidden for a request that a page of another site may have made: one that changes something, or that opens a
 * connection, has to be from a page of this very origin. Browsers set `Sec-Fetch-Site` and `Origin`, and pages cannot (Fetch
 * Metadata; RFC 6454). A page of another site cannot set `X-Bramble-CSRF` without a preflight, which is never granted.
 */
export function refuseForgery({ method, headers, offered }: CookieRequest): void {
  const site = textOf(headers['sec-fetch-site'])
  const isReading = (method === 'GET' || method === 'HEAD') && offered === undefined
  const fine = isReading ? ['same-origin', 'none', undefined] : ['same-origin', undefined]
  if (!fine.includes(site)) throw forbidden('a page of another site cannot use the session of the dashboard')
  if (isReading) return
  const origin = textOf(headers['origin'])
  const host = textOf(headers['host']) ?? textOf(headers[':authority'])
  if (origin === undefined ? site === undefined : !isOriginOf(origin, host))
    throw forbidden('the Origin of the request is not this server')
  if (offered === undefined && headers['x-bramble-csrf'] === undefined)
    throw forbidden('a request with the session of the dashboard needs the header X-Bramble-CSRF')
}

function isOriginOf(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && origin === `https://${host ?? ''}`
}

function textOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}

function forbidden(message: string): ApiError {
  return new ApiError('Forbidden', message)
}
