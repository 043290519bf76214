/**
 * One HTTPS call of a webhook. The server must prove its name with the webhook's caBundle; redirects are not followed. Time, bytes
 * of the answer and connections are bounded.
 */
import { Agent, request } from 'node:https'
import type { WebhookClientConfig } from '../../../api/admission/webhook.ts'
import { isApiError } from '../../../api/api-error.ts'
import { clipped } from '../../../api/problem.ts'
import { TooLate, withDeadline } from '../../../daemon/deadline.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { parseJsonBody } from '../wire/request-body.ts'

export type WebhookCall = {
  readonly client: WebhookClientConfig
  readonly timeoutSeconds: number
  readonly body: string
  readonly signal: AbortSignal
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

export function webhookCaller(): WebhookCaller {
  // A pool for each server and caBundle; others wait for their turn, within their own deadlines.
  const agent = new Agent({ keepAlive: true, maxSockets: 16, maxTotalSockets: 64, maxFreeSockets: 2, timeout: idleMs })
  return {
    async call({ client, timeoutSeconds, body, signal }) {
      if (client.url === undefined) {
        const { namespace = '', name = '' } = client.service ?? {}
        throw new Error(`service "${namespace}/${name}" cannot be reached: set clientConfig.url instead of service`)
      }
      const url = new URL(client.url)
      url.searchParams.set('timeout', `${timeoutSeconds}s`)
      const ca = client.caBundle ? Buffer.from(client.caBundle, 'base64').toString('utf8') : undefined
      try {
        return await withDeadline(timeoutSeconds * 1000, signal, (own) => post(url, body, ca, agent, own))
      } catch (cause) {
        if (cause instanceof AnswerError) throw cause
        throw new Error(`Post ${JSON.stringify(url.href)}: ${reasonOf(cause)}`, { cause })
      }
    },
    close: () => agent.destroy(),
  }
}

/** The server answered, and not as it should. */
class AnswerError extends Error {
  override readonly name = 'AnswerError'
}

function post(url: URL, body: string, ca: string | undefined, agent: Agent, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'bramble-controller-admission',
    }
    const asked = request(
      url,
      { method: 'POST', agent, headers, signal, ...(ca !== undefined && { ca }) },
      (answer) => {
        const parts: Buffer[] = []
        let size = 0
        answer.on('data', (part: Buffer) => {
          size += part.length
          if (size <= mostAnswerBytes) parts.push(part)
          else asked.destroy(new AnswerError(`the answer is longer than ${mostAnswerBytes} bytes`))
        })
        answer.once('error', reject)
        answer.once('end', () => {
          try {
            resolve(answerOf(answer.statusCode ?? 0, Buffer.concat(parts)))
          } catch (error) {
            reject(error)
          }
        })
      },
    )
    asked.once('error', reject)
    asked.end(body)
  })
}

function answerOf(code: number, body: Buffer): unknown {
  if (code === 200) {
    try {
      return parseJsonBody(body)
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
