/**
 * One HTTPS call of a webhook, at its URL or through its Service. The server must prove its name with the webhook's caBundle;
 * redirects are not followed. Time, bytes of the answer and connections are bounded.
 */
import { type ClientRequest, type RequestOptions, request as requestOn } from 'node:http'
import { Agent, request } from 'node:https'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { WebhookClientConfig } from '../../../api/admission/webhook.ts'
import { isApiError } from '../../../api/api-error.ts'
import { clipped } from '../../../api/problem.ts'
import { TooLate, withDeadline } from '../../../daemon/deadline.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { collectedBytes } from '../../../daemon/http/collected-bytes.ts'
import { limitInformational } from '../../../daemon/http/informational-answers.ts'
import { parseJsonBody } from '../wire/request-body.ts'

export type WebhookCall = {
  readonly client: WebhookClientConfig
  readonly timeoutSeconds: number
  readonly body: string
  /** The fields and items that the answer may have; undefined: those of the body of a request. */
  readonly mostValues?: number
  readonly signal: AbortSignal
}

/** The way to Services. */
export interface WebhookServices {
  /** Resolves with a connection to a ready endpoint of the Service's port. */
  connect(
    service: { readonly namespace: string; readonly name: string },
    port: number,
    signal: AbortSignal,
  ): Promise<Duplex>
}

export interface WebhookCaller {
  /** The body of an answer with the code 200. Rejects with an error in Kubernetes' words. */
  call(call: WebhookCall): Promise<unknown>
  /** Closes connections that are kept. */
  close(): void
}

/** As the body of a request. */
const mostAnswerBytes = 3 * 1024 * 1024
const idleMs = 30_000

/** `services` undefined: webhooks are called by URL only. */
export function webhookCaller(services?: WebhookServices): WebhookCaller {
  // A pool for each server and caBundle; others wait for their turn, within their own deadlines.
  const agent = new Agent({ keepAlive: true, maxSockets: 16, maxTotalSockets: 64, maxFreeSockets: 2, timeout: idleMs })
  return {
    async call({ client, timeoutSeconds, body, mostValues, signal }) {
      const ca = client.caBundle ? Buffer.from(client.caBundle, 'base64').toString('utf8') : undefined
      const trust: Trust = ca === undefined ? {} : { ca }
      const timeout = `timeout=${timeoutSeconds}s`
      const reach =
        client.url === undefined
          ? throughService(serviceOf(client), timeout, trust, services)
          : atUrl(new URL(client.url), timeout, { ...trust, agent })
      try {
        return await withDeadline(timeoutSeconds * 1000, signal, (own) => reach.post(body, mostValues, own))
      } catch (cause) {
        if (cause instanceof AnswerError) throw cause
        throw new Error(`Post ${JSON.stringify(reach.href)}: ${reasonOf(cause)}`, { cause })
      }
    },
    close: () => agent.destroy(),
  }
}

/** The server answered, and not as it should. */
class AnswerError extends Error {
  override readonly name = 'AnswerError'
}

/** A way to a webhook. */
type Reach = {
  /** As Kubernetes names it in errors. */
  readonly href: string
  post(body: string, mostValues: number | undefined, signal: AbortSignal): Promise<unknown>
}
type Trust = { readonly ca?: string }

function atUrl(url: URL, timeout: string, options: Trust & { readonly agent: Agent }): Reach {
  const [name = '', value = ''] = timeout.split('=')
  url.searchParams.set(name, value)
  return {
    href: url.href,
    post: (body, most, signal) => answered(request(url, postOptions(body, signal, options)), body, most),
  }
}

type Service = NonNullable<WebhookClientConfig['service']>

function serviceOf({ service }: WebhookClientConfig): Service {
  if (service === undefined) throw new Error('clientConfig has neither a url nor a service')
  return service
}

/** Each call has a connection of its own: it occupies its node for no longer than the call. */
function throughService(
  { namespace, name, path = '', port = 443 }: Service,
  timeout: string,
  trust: Trust,
  services: WebhookServices | undefined,
): Reach {
  const host = `${name}.${namespace}.svc`
  const place = `${path.startsWith('/') ? '' : '/'}${path}?${timeout}`
  return {
    href: `https://${host}:${port}${place}`,
    async post(body, most, signal) {
      if (services === undefined) throw new Error('there is no way to Services')
      const connection = await services.connect({ namespace, name }, port, signal)
      try {
        const stream = await encrypted(connection, host, trust)
        const options = { ...postOptions(body, signal, { host, port, path: place }), createConnection: () => stream }
        return await answered(requestOn(options), body, most)
      } finally {
        connection.destroy()
      }
    },
  }
}

/** Rejects where the server does not prove that it is `host`. */
function encrypted(connection: Duplex, host: string, trust: Trust): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const stream = connectTls({ socket: connection, servername: host, ...trust })
    stream.on('error', reject)
    connection.on('error', reject)
    connection.once('close', () => stream.destroy(new Error('the connection was closed')))
    stream.once('secureConnect', () => resolve(stream))
  })
}

function postOptions<More extends object>(body: string, signal: AbortSignal, more: More): RequestOptions & More {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'bramble-controller-admission',
  }
  return { method: 'POST', headers, signal, ...more }
}

function answered(asked: ClientRequest, body: string, most: number | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    asked.once('response', (answer) => {
      const bytes = collectedBytes(mostAnswerBytes)
      answer.on('data', (part: Buffer) => {
        if (bytes.add(part)) return
        const because = bytes.isCutUp ? 'comes in too many small pieces' : `is longer than ${mostAnswerBytes} bytes`
        asked.destroy(new AnswerError(`the answer ${because}`))
      })
      answer.on('error', reject)
      answer.once('end', () => {
        try {
          resolve(answerOf(answer.statusCode ?? 0, bytes.take(), most))
        } catch (error) {
          reject(error)
        }
      })
    })
    limitInformational(asked)
    // Not once: it may fail again while its socket is torn down.
    asked.on('error', reject)
    asked.end(body)
  })
}

function answerOf(code: number, body: Buffer, most: number | undefined): unknown {
  if (code === 200) {
    try {
      return parseJsonBody(body, most)
    } catch (error) {
      throw new AnswerError(isApiError(error) ? error.message : messageOf(error), { cause: error })
    }
  }
  if (code === 404) throw new AnswerError('the server could not find the requested resource')
  const text = JSON.stringify(clipped(body.subarray(0, 1024).toString('utf8'), 256))
  if (code >= 500) throw new AnswerError(`an error on the server (${text}) has prevented the request from succeeding`)
  throw new AnswerError(`the server responded with the status code ${code}: ${text}`)
}

function reasonOf(error: unknown): string {
  if (error instanceof TooLate) return 'context deadline exceeded'
  const { code, address, port } = error as { code?: string; address?: string; port?: number }
  if (code === 'ECONNREFUSED') return `dial tcp ${address}:${port}: connect: connection refused`
  return messageOf(error)
}
