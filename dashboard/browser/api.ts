/** Requests to the Kubernetes API of this very server, with the login of this browser. */
import type { SessionAnswer } from '../../api/dashboard/dashboard-messages.ts'

/** The server refused: its message is a sentence for people. */
export class RefusedError extends Error {
  readonly code: number
  readonly retryAfterSeconds: number

  constructor(code: number, message: string, retryAfterSeconds = 0) {
    super(message)
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export type Sent = { readonly body?: unknown; readonly type?: string; readonly signal?: AbortSignal }

/** The parsed answer, undefined where it is empty. Rejects with a RefusedError, or with a TypeError where there is no connection. */
export async function callApi(method: string, path: string, sent: Sent = {}): Promise<unknown> {
  try {
    return await callOnce(method, path, sent)
  } catch (error) {
    // A connection that was lost in between: what can be done twice is.
    if (!(error instanceof TypeError) || method === 'POST' || sent.signal?.aborted) throw error
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    return callOnce(method, path, sent)
  }
}

async function callOnce(method: string, path: string, { body, type, signal }: Sent): Promise<unknown> {
  const answer = await fetch(path, {
    method,
    credentials: 'same-origin',
    headers: {
      'x-bramble-csrf': '1',
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': type ?? 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  })
  const text = await answer.text()
  const content: unknown = text === '' ? undefined : parsed(text)
  if (answer.ok) return content
  throw new RefusedError(
    answer.status,
    messageIn(content, answer.status),
    Number(answer.headers.get('retry-after') ?? 0),
  )
}

export const mergePatchType = 'application/merge-patch+json'

/** The login of this browser; undefined: there is none. */
export async function currentSession(): Promise<SessionAnswer | undefined> {
  try {
    return (await callApi('GET', '/ui/api/session')) as SessionAnswer
  } catch (error) {
    if (error instanceof RefusedError && (error.code === 401 || error.code === 403)) return undefined
    throw error
  }
}

/** `proof`: a link of `login-link`, the token of a service account, or a kiosk link. Rejects with the reason. */
export async function logIn(proof: { link: string } | { token: string } | { kiosk: string }): Promise<void> {
  await callApi('POST', '/ui/api/login', { body: proof })
}

/** The sentence to show for an error of a request. */
export function reasonOf(error: unknown): string {
  if (error instanceof RefusedError) return error.message
  return error instanceof TypeError ? 'The controller cannot be reached.' : String(error)
}

/** Whether the same request may be answered later: there is no connection, the controller starts, or it has too many requests. */
export function isPassing(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof RefusedError && (error.code === 429 || error.code >= 500))
}

/** Milliseconds until it is worth asking again; with some chance, so that all open pages do not ask together. */
export function askAgainMs(error: unknown): number {
  const seconds = error instanceof RefusedError ? error.retryAfterSeconds : 0
  return Math.max(seconds * 1_000, 2_000) + Math.random() * 2_000
}

export type Question = {
  readonly verb: string
  readonly resource: string
  readonly group?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

const answers = new Map<string, Promise<boolean>>()

/** Whether the identity of this browser may do it. Asked once a minute at most; the server decides again when it is done. */
export function mayI(question: Question): Promise<boolean> {
  const key = JSON.stringify(question)
  const known = answers.get(key)
  if (known !== undefined) return known
  const asked = decisionOn(question)
  answers.set(key, asked)
  setTimeout(() => answers.delete(key), 60_000)
  return asked
}

/** Most rights are for objects of any name: then one question stands for all rows of a list. */
async function decisionOn({ name, ...ofAnyName }: Question): Promise<boolean> {
  if (name === undefined) return inTurn(() => askReview(ofAnyName, 3))
  return (await mayI(ofAnyName)) || inTurn(() => askReview({ ...ofAnyName, name }, 3))
}

/** Fewer than the requests that a user may have under way at the API (`flow-levels.ts`); others are answered with 429. */
let free = 4
const waiting: (() => void)[] = []

async function inTurn<T>(act: () => Promise<T>): Promise<T> {
  if (free > 0) free -= 1
  else await new Promise<void>((resolve) => waiting.push(resolve))
  try {
    return await act()
  } finally {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }
}

/** A connection that breaks, or a limit, is not a refusal: the request is repeated. */
async function askReview(question: Question, attempts: number): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: {},
    spec: { resourceAttributes: question },
  }
  try {
    const answer = await callApi('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { body })
    return (answer as { status?: { allowed?: boolean } }).status?.allowed === true
  } catch (error) {
    if (!isPassing(error) || attempts <= 1) return false
    await new Promise((resolve) => setTimeout(resolve, askAgainMs(error)))
    return askReview(question, attempts - 1)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function messageIn(content: unknown, code: number): string {
  const message = (content as { message?: unknown } | undefined)?.message
  return typeof message === 'string' ? message : `The server answered with status ${code}.`
}
