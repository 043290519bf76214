/** Requests that a part of this program sends to its own API: authorized, admitted and audited as those of a client are. */
import type { Identity } from '../../../api/identity.ts'
import { answerRequest } from './answer-request.ts'
import type { RequestNeeds } from './api-request.ts'

export type LocalRequest = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Without a query. */
  readonly path: string
  readonly body?: unknown
  /** `application/json` if it is left out. */
  readonly contentType?: string
  /** The name under which the fields of a server-side apply are kept. */
  readonly fieldManager?: string
}

export type LocalAnswer = { readonly code: number; readonly body: unknown }

/**
 * The answer to a request of `identity`, which the caller vouches for. Never rejects: a refusal is an answer with its code and a
 * Status. Only for answers that are one object: of a stream nothing is read, and the code is 406.
 */
export type LocalRequests = (identity: Identity, request: LocalRequest, signal: AbortSignal) => Promise<LocalAnswer>

/** The audit log names `userAgent`, and no address. */
export function localRequests(needs: RequestNeeds, userAgent: string): LocalRequests {
  const { audit, clock } = needs
  return async (identity, { method, path, body, contentType = 'application/json', fieldManager }, signal) => {
    const [startedMs, receivedMs] = [clock.monotonicMs(), clock.wallMs()]
    const request = {
      method,
      path,
      query: new URLSearchParams(fieldManager === undefined ? {} : { fieldManager }),
      certificate: undefined,
      headers: { 'content-type': contentType, accept: 'application/json', 'user-agent': userAgent },
      readBody: async () => Buffer.from(body === undefined ? '' : JSON.stringify(body)),
      signal,
    }
    const { route, answer, sender, admission, held } = await answerRequest(request, needs, { identity })
    try {
      const answered = answer.kind === 'object' ? { code: answer.code, body: answer.body } : notAnObject
      const id = route.kind === 'resource' ? audit?.idFor(route) : undefined
      if (id !== undefined && route.kind === 'resource') {
        const tookMs = clock.monotonicMs() - startedMs
        const facts = { id, route, sender, uri: path, address: undefined, userAgent, receivedMs, tookMs }
        audit?.record({ ...facts, ...answered })
      }
      return answered
    } finally {
      admission?.release()
      held?.release()
    }
  }
}

const notAnObject: LocalAnswer = { code: 406, body: undefined }
