/** The fleet's API over HTTPS, for programs: JSON in and out, one authority trusted, a deadline on every call. */

import { type RequestOptions, request } from 'node:https'
import { parseJson } from '../api/text/json.ts'
import { type Clock, systemClock } from './clock.ts'
import { TooLate, withDeadline } from './deadline.ts'
import { codeOf } from './errors.ts'
import { collectedBytes } from './http/collected-bytes.ts'
import { connectToServer, type KnownTime } from './server-check.ts'

export type ApiAnswer = {
  readonly status: number
  /** Parsed when it is JSON, the text itself when it is not. */
  readonly body: unknown
  /** What time the server believes it is, as HTTP writes it. */
  readonly dateHeader: string | undefined
  /** The server asks for another attempt after this many seconds. */
  readonly retryAfterSeconds?: number | undefined
}

/** Every answer of the server is a value, also a refusal; 429 only where it stays after ten more attempts. Rejects with an `ApiUnreachable` when there was none. */
export interface ApiClient {
  get(path: string, signal?: AbortSignal): Promise<ApiAnswer>
  post(path: string, body: unknown, signal?: AbortSignal): Promise<ApiAnswer>
  /** A JSON merge patch unless `contentType` differs. */
  patch(path: string, body: unknown, contentType?: string, signal?: AbortSignal): Promise<ApiAnswer>
  /** `options`: DeleteOptions. */
  delete(path: string, signal?: AbortSignal, options?: unknown): Promise<ApiAnswer>
}

export type ApiClientSettings = {
  /** `https://host:6443` */
  readonly url: string
  /** PEM: the only authority whose servers are trusted. */
  readonly ca: string
  /** PEM, with its key: the client certificate. */
  readonly certificate?: string
  readonly key?: string
  /** Sent as a bearer token. */
  readonly token?: string
  /** Sent as the identity to act as (Impersonate-User, Impersonate-Group). */
  readonly impersonate?: { readonly user: string; readonly groups: readonly string[] }
  /** For one call, from the connection to the last byte. */
  readonly deadlineMs?: number
  /** What the server's certificate is judged by where the system's clock may be wrong; else by that clock. */
  readonly knownTime?: KnownTime
  /** The time between attempts, for tests. */
  readonly sleep?: Clock['sleep']
  /** Called when there was no answer. */
  readonly onUnreachable?: () => void
  /** Called with every answer: the time by the server's clock, to a second. */
  readonly onServerTime?: (wallMs: number) => void
}

/** No answer came, or none that can be trusted. `code` is that of Node.js or OpenSSL. */
export class ApiUnreachable extends Error {
  override readonly name = 'ApiUnreachable'
  readonly code: string

  constructor(message: string, code: string, options: { cause: unknown }) {
    super(message, options)
    this.code = code
  }
}

const longestAnswer = 16 * 1024 * 1024

/** As client-go: a request that is over the server's limits is sent again, up to ten times, when the server asks for it. */
const mostAttempts = 11
const longestWaitMs = 30_000

/**
 * Opens a connection for each call: for callers that have a few to make, not for watching. Settings that may change are
 * given as a function, asked for each call.
 */
export function apiClient(given: ApiClientSettings | (() => ApiClientSettings)): ApiClient {
  async function call(method: string, path: string, signal?: AbortSignal, body?: unknown, contentType?: string) {
    for (let attempt = 1; ; attempt++) {
      const answer = await callOnce(method, path, signal, body, contentType)
      const { status, retryAfterSeconds } = answer
      if (status !== 429 || retryAfterSeconds === undefined || attempt === mostAttempts) return answer
      // Longer each time and never the same: many machines may have been sent away at one moment.
      const waitMs = Math.min(longestWaitMs, retryAfterSeconds * 1000 * (1 + attempt * Math.random()))
      const { sleep = systemClock.sleep } = typeof given === 'function' ? given() : given
      await sleep(waitMs, signal)
      if (signal?.aborted) throw signal.reason
    }
  }

  async function callOnce(method: string, path: string, signal?: AbortSignal, body?: unknown, contentType?: string) {
    const settings = typeof given === 'function' ? given() : given
    const { url, deadlineMs = 15_000 } = settings
    const sent = body === undefined ? undefined : JSON.stringify(body)
    const options = { method, headers: headersOf(settings, sent, contentType) }
    try {
      const answer = await withDeadline(deadlineMs, signal, (deadline) =>
        exchange(new URL(path, url), settings, { ...options, signal: deadline }, sent),
      )
      if (answer.dateHeader !== undefined) settings.onServerTime?.(Date.parse(answer.dateHeader))
      return answer
    } catch (cause) {
      if (signal?.aborted) throw signal.reason
      settings.onUnreachable?.()
      throw unreachable(`Cannot ${method} ${new URL(path, url).href}`, cause, deadlineMs)
    }
  }

  return {
    get: (path, signal) => call('GET', path, signal),
    post: (path, body, signal) => call('POST', path, signal, body),
    patch: (path, body, contentType = 'application/merge-patch+json', signal) =>
      call('PATCH', path, signal, body, contentType),
    delete: (path, signal, options) => call('DELETE', path, signal, options),
  }
}

/** `sent`: the body. */
function headersOf(
  { token, impersonate }: ApiClientSettings,
  sent: string | undefined,
  contentType = 'application/json',
) {
  return {
    accept: 'application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(impersonate && { 'impersonate-user': impersonate.user, 'impersonate-group': [...impersonate.groups] }),
    // Its length too: of a deletion Node would otherwise send the body after the end of the request.
    ...(sent !== undefined && { 'content-type': contentType, 'content-length': Buffer.byteLength(sent) }),
  }
}

function unreachable(message: string, cause: unknown, deadlineMs: number): ApiUnreachable {
  if (cause instanceof TooLate) {
    return new ApiUnreachable(message, 'ETIMEDOUT', { cause: new Error(`no answer within ${deadlineMs / 1000} s`) })
  }
  const first = firstOf(cause)
  return new ApiUnreachable(message, codeOf(first) || 'UNKNOWN', { cause: first })
}

async function exchange(
  url: URL,
  { ca, certificate, key, knownTime }: ApiClientSettings,
  options: RequestOptions,
  sent: string | undefined,
): Promise<ApiAnswer> {
  const socket = await connectToServer(
    {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port || 443),
      ca,
      ...(certificate && key ? { cert: certificate, key } : {}),
      knownTime,
    },
    options.signal,
  )
  return new Promise((resolve, reject) => {
    const asked = request(url, { ...options, createConnection: () => socket }, (response) => {
      const bytes = collectedBytes(longestAnswer)
      response.on('data', (chunk: Buffer) => {
        if (!bytes.add(chunk)) asked.destroy(new Error(`The answer is longer than ${longestAnswer} bytes, or cut up`))
      })
      response.on('error', reject)
      response.on('end', () => {
        const text = bytes.take().toString('utf8')
        resolve({
          status: response.statusCode ?? 0,
          body: parseJson(text) ?? text,
          dateHeader: response.headers.date,
          retryAfterSeconds: secondsIn(response.headers['retry-after']),
        })
      })
    })
    asked.on('error', reject)
    asked.end(sent)
  })
}

/** Undefined where the header is absent or a date, which Kubernetes does not send. */
function secondsIn(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) : undefined
}

/** The error of the first address: a name with several addresses fails with one for each. */
function firstOf(error: unknown): unknown {
  return error instanceof AggregateError ? error.errors[0] : error
}

/** The message of a Kubernetes Status; undefined if the body is not one. */
export function statusMessage(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('kind' in body) || body.kind !== 'Status') return undefined
  return 'message' in body && typeof body.message === 'string' ? body.message : ''
}
