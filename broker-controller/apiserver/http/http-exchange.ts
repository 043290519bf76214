/** One HTTP request and its answer, as bytes of a connection; what they mean is decided in `requests.ts`. */
import type { Readable } from 'node:stream'
import { ApiError } from '../../../api/api-error.ts'
import { anonymous } from '../../../api/identity.ts'
import { collectedBytes } from '../../../daemon/http/collected-bytes.ts'
import type { Log } from '../../../daemon/log.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import { beginOperation } from '../../../daemon/watchdog/event-loop.ts'
import { offeredToken } from '../authentication/browser-credentials.ts'
import { peerAddress } from '../authentication/peer-address.ts'
import type { HeldAnswer } from '../authorization/held-access.ts'
import { headersOf } from '../authorization/impersonation.ts'
import { withoutCardToken } from '../browser-sessions/dashboard-paths.ts'
import { answerRequest } from '../filters/answer-request.ts'
import type { Answered, ApiRequest, RequestNeeds } from '../filters/api-request.ts'
import type { FlowAdmission } from '../flow-control/flow-control.ts'
import { watchOverSocket } from '../streams/watch-socket.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { writeAnswer } from './answer-writer.ts'
import type { LimitedConnections } from './connection-limits.ts'
import type { Connections } from './connections.ts'
import type { HttpMessages, Incoming, Outgoing } from './messages.ts'
import type { RequestCounters } from './request-counters.ts'
import type { SlowReaders } from './slow-readers.ts'

export type HttpExchangeNeeds = {
  readonly requests: RequestNeeds
  readonly certificateOf: Connections['certificateOf']
  readonly limitedConnections: Pick<LimitedConnections, 'spoke' | 'identified'>
  readonly counters: RequestCounters
  readonly slow: SlowReaders
  readonly log: Log
  /** For lines that a client can cause. */
  readonly limited: LimitedLog
  /** Aborted when the server stops: long requests end. */
  readonly closing: AbortSignal
}

/** The request asks for another protocol on its connection. */
export type RequestedUpgrade = {
  /** What is different in it. */
  readonly request: Pick<ApiRequest, 'offered' | 'readBody'>
  /** Hands the connection over; resolves when it is done with. `gone` is to be aborted with it. */
  readonly take: (answer: ApiResponse & { readonly kind: 'connection' }, gone: AbortController) => Promise<void>
}

/** Without a reason each request would make an exception with its stack. */
const exchangeEnded = new Error('The exchange is over')
const maxBodyBytes = 3 * 1024 * 1024 // as Kubernetes

/** Never rejects: the client gets the error, or is gone. */
export async function httpExchange(
  messages: HttpMessages,
  { requests, certificateOf, limitedConnections, counters, slow, log, limited, closing }: HttpExchangeNeeds,
  upgrade?: RequestedUpgrade,
): Promise<void> {
  const { incoming, outgoing, sentBytes, closeConnection } = messages
  const { clock } = requests
  const startedMs = clock.monotonicMs()
  const receivedMs = clock.wallMs()
  const gone = new AbortController()
  const leave = () => gone.abort(exchangeEnded)
  // An exchange that ended well has nothing left to end, and an abort costs an event with its dispatch.
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) leave()
  })
  outgoing.on('error', leave)
  closing.addEventListener('abort', leave, { once: true })
  if (closing.aborted) leave()
  const writtenBefore = sentBytes()
  let admission: FlowAdmission | undefined
  let held: HeldAnswer | undefined
  let endings: readonly AbortSignal[] = []
  try {
    limitedConnections.spoke(incoming.socket)
    const onIdentified = (owner: string) => limitedConnections.identified(incoming.socket, owner)
    const request = { ...requestOf(messages, certificateOf, gone.signal, upgrade), onIdentified }
    const operation = `${request.method} ${request.path}`
    beginOperation('request', operation)
    const answered = await answerRequest(request, requests)
    beginOperation('request', operation)
    const answer = overSocket(answered.answer, incoming, upgrade, slow)
    admission = answered.admission
    held = answered.held
    endings = [answered.sessionEnded, admission?.displaced, held?.lost].filter((one) => one !== undefined)
    leaveWith(endings, leave)
    if (!readsBody(answer)) messages.dropBody?.()
    const isWatch = lasts(answer)
    if (closeConnection !== undefined && isRefusedStranger(answered)) closeConnection()
    const code = codeOf(answer)
    const audit = auditing(incoming, outgoing, answered, { receivedMs, startedMs, code }, requests)
    if (answer.kind === 'connection') audit?.(true)
    if (isWatch) counters.watches.inc()
    else counters.seen(answered, code, clock.monotonicMs() - startedMs)
    try {
      await sendAnswer(answer, messages, upgrade, gone, slow)
      // A file is paid for as one stream: its size would refuse what follows, as the rest of a download that was cut off.
      if (answer.kind !== 'file') admission?.answered(sentBytes() - writtenBefore)
    } finally {
      audit?.()
      if (isWatch) {
        counters.watches.dec()
        counters.seen(answered, code)
      }
    }
    const { method, url = '' } = incoming
    log.debug('Request answered', { method, url: withoutCardToken(url), code, user: answered.user })
  } catch (error) {
    const { method, url = '' } = incoming
    limited.error('cut short', 'Answer cut short', { method, url: withoutCardToken(url), error })
    outgoing.destroy()
  } finally {
    admission?.release()
    held?.release()
    for (const ending of endings) ending.removeEventListener('abort', leave)
    closing.removeEventListener('abort', leave)
  }
}

function sendAnswer(
  answer: ApiResponse,
  { incoming, outgoing }: HttpMessages,
  upgrade: RequestedUpgrade | undefined,
  gone: AbortController,
  slow: SlowReaders,
): Promise<void> {
  return answer.kind === 'connection' && upgrade !== undefined
    ? upgrade.take(answer, gone)
    : writeAnswer(answer, incoming.method === 'HEAD', outgoing, gone.signal, slow)
}

function leaveWith(endings: readonly AbortSignal[], leave: () => void): void {
  for (const ending of endings) ending.addEventListener('abort', leave, { once: true })
  if (endings.some(({ aborted }) => aborted)) leave()
}

function codeOf(answer: ApiResponse): number {
  if ('code' in answer) return answer.code
  return answer.kind === 'connection' ? 101 : 200
}

/** Its body is passed on while it is answered. */
function readsBody({ kind }: ApiResponse): boolean {
  return kind === 'proxied' || kind === 'connection'
}

function lasts({ kind }: ApiResponse): boolean {
  return ['stream', 'flow', 'file', 'connection', 'proxied'].includes(kind)
}

/**
 * A stranger's connection of HTTP/2 serves many requests at once: the refused one is its last, as with
 * UnauthenticatedHTTP2DOSMitigation of kube-apiserver.
 */
function isRefusedStranger({ answer, user }: Answered): boolean {
  return (
    (user === '' || user === anonymous.user) && answer.kind === 'object' && (answer.code === 401 || answer.code === 403)
  )
}

/** A watch that was asked for as a WebSocket. */
function overSocket(
  answer: ApiResponse,
  { headers }: Incoming,
  upgrade: RequestedUpgrade | undefined,
  { drained }: SlowReaders,
): ApiResponse {
  const offered = upgrade?.request.offered
  if (answer.kind !== 'stream' || offered?.upgrade !== 'websocket') return answer
  return watchOverSocket(answer, offeredToken(offered).offered, headers.origin, drained)
}

/** What writes the request into the audit log, where its route is audited. The answer carries the ID. */
function auditing(
  incoming: Incoming,
  outgoing: Outgoing,
  { route, sender, answer, isForwarded }: Answered,
  { receivedMs, startedMs, code }: { readonly receivedMs: number; readonly startedMs: number; readonly code: number },
  { audit, clock }: Pick<RequestNeeds, 'audit' | 'clock'>,
): ((isBeginning?: boolean) => void) | undefined {
  const isOfObjects = route.kind === 'resource' || route.kind === 'aggregated'
  if (audit === undefined || !isOfObjects || isForwarded) return undefined
  const id = audit.idFor(route)
  if (id === undefined) return undefined
  if (!outgoing.headersSent) outgoing.setHeader('audit-id', id)
  const { url: uri = '/', headers, socket } = incoming
  const body = answer.kind === 'object' ? answer.body : undefined
  const address = sender.address ?? peerAddress(socket)
  const facts = { id, route, sender, uri, address, userAgent: headers['user-agent'], code, body, receivedMs }
  return (isBeginning = false) => audit.record({ ...facts, tookMs: clock.monotonicMs() - startedMs, isBeginning })
}

function requestOf(
  { incoming, body }: HttpMessages,
  certificateOf: Connections['certificateOf'],
  signal: AbortSignal,
  upgrade: RequestedUpgrade | undefined,
): ApiRequest {
  const { method = 'GET', url = '/' } = incoming
  const [path = '/', query = ''] = splitOnce(url, '?')
  return {
    method,
    path,
    query: new URLSearchParams(query),
    certificate: certificateOf(incoming.socket),
    address: peerAddress(incoming.socket),
    headers: headersOf(incoming),
    async readBody() {
      const bytes = await bodyOf(body)
      // What follows is done without a pause: it is parsed, decoded and validated.
      beginOperation('request', `${method} ${path}`)
      return bytes
    },
    raw: {
      method,
      path,
      query,
      headers: incoming.rawHeaders,
      address: peerAddress(incoming.socket),
      body: upgrade === undefined ? body : undefined,
    },
    signal,
    ...upgrade?.request,
  }
}

function splitOnce(text: string, at: string): [string, string?] {
  const index = text.indexOf(at)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}

/** What is beyond the limit is read and thrown away, so that the client receives the reason; of a body that is cut up nothing more is read. */
function bodyOf(body: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const bytes = collectedBytes(maxBodyBytes)
    body.on('data', (chunk: Buffer) => {
      if (bytes.add(chunk)) return
      if (bytes.isCutUp) body.destroy()
      else reject(new ApiError('RequestEntityTooLarge', `Request entity too large: limit is ${maxBodyBytes}`))
    })
    body.once('end', () => resolve(bytes.take()))
    body.once('close', () => {
      if (!body.readableEnded) reject(new ApiError('BadRequest', 'the body of the request ended early'))
    })
    body.once('error', (cause) => {
      reject(new ApiError('BadRequest', 'the body of the request cannot be read', undefined, { cause }))
    })
  })
}
