/** Requests to one controller over connections that stay open, as clients of Kubernetes keep them. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import type { ApiAccess } from '../../broker-controller/commands/connection/kubeconfig.ts'

export type Answered = { readonly status: number; readonly body: unknown }

export interface ApiSession {
  readonly url: string
  /** Undefined: no answer came, within `deadlineMs` where one is given. A body of PATCH is a JSON merge patch. */
  send(method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown): Promise<Answered | undefined>
  /** The lines of the answer, as far as they come. Ends without an error when the connection or the answer does, or `signal` aborts. */
  lines(path: string, signal: AbortSignal): AsyncIterable<string>
  close(): void
}

export function apiSession(access: ApiAccess, deadlineMs?: number): ApiSession {
  const { url, ca, certificate: cert, key } = access
  const agent = new Agent({ keepAlive: true, ca, cert, key })
  const answerOf = async (path: string, options: RequestOptions, sent?: string) => {
    const asked = request(new URL(path, url), { ...options, agent })
    asked.end(sent)
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    answer.setEncoding('utf8')
    return answer
  }
  return {
    url,
    async send(method, path, body) {
      const sent = body === undefined ? undefined : JSON.stringify(body)
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const headers = sent === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(sent) }
      const signal = deadlineMs === undefined ? undefined : AbortSignal.timeout(deadlineMs)
      try {
        const answer = await answerOf(path, { method, headers, ...(signal && { signal }) }, sent)
        let text = ''
        for await (const piece of answer) text += piece
        return { status: answer.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : text }
      } catch {
        return undefined
      }
    },
    async *lines(path, signal) {
      try {
        let text = ''
        for await (const piece of await answerOf(path, { signal })) {
          const whole = `${text}${piece}`.split('\n')
          text = whole.pop() ?? ''
          yield* whole
        }
        yield text
      } catch {
        // The reader continues elsewhere.
      }
    },
    close: () => agent.destroy(),
  }
}
