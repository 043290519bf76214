/** Connections to extension servers, through their Services, as the front proxy. */
import { type IncomingMessage, request } from 'node:http'
import type { Duplex } from 'node:stream'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Identity } from '../../../api/identity.ts'
import { clipped } from '../../../api/problem.ts'
import type { APIServiceSpec } from '../../../api/registration/api-service.ts'
import type { Issued } from '../../../certs/issue.ts'
import { withOwnSignal } from '../../../daemon/aborted.ts'
import { startDeadline, withDeadline } from '../../../daemon/deadline.ts'
import { collectedBytes, pieceMeter } from '../../../daemon/http/collected-bytes.ts'
import { limitInformational } from '../../../daemon/http/informational-answers.ts'
import type { ServiceConnections, StreamSender } from '../proxy/service-connections.ts'
import { encryptedConnection, type ServerTrust } from '../proxy/tls-connection.ts'
import type { StoredApiService } from './api-services.ts'
import { withRemoteUser } from './remote-user.ts'

export type ExtensionServerNeeds = {
  readonly connections: ServiceConnections
  /** The certificate of the front proxy. */
  readonly client: () => Promise<Issued>
}

export type ExtensionAnswer = {
  readonly code: number
  readonly body: Buffer
  /** As the server names its body. */
  readonly etag?: string | undefined
}

export interface ExtensionServers {
  /** Before TLS. Rejects with the ApiError of the Service. */
  connect(apiService: StoredApiService, sender: StreamSender): Promise<Duplex>
  /** How its server proves who it is, and what this API shows to it. */
  trust(apiService: StoredApiService): Promise<ServerTrust>
  /** One request by this API itself, within 5 s and so many bytes. Rejects with what went wrong. */
  ask(apiService: StoredApiService, path: string, more: AskOptions): Promise<ExtensionAnswer>
  /**
   * The same of an answer without end, whose head comes within 5 s. `take` is called with each part of a body of status 200, and the next
   * part is read when it resolves. Resolves when the server ends the answer.
   */
  stream(apiService: StoredApiService, path: string, more: StreamOptions): Promise<{ readonly code: number }>
}

export type AskOptions = {
  readonly accept: string
  readonly mostBytes: number
  readonly signal: AbortSignal
  /** undefined: GET. PATCH: a JSON merge patch. */
  readonly method?: 'GET' | 'DELETE' | 'PATCH'
  /** In JSON. */
  readonly body?: object
  /** The tag of a body that is here: the server need not send that again. */
  readonly ifNoneMatch?: string | undefined
}

export type StreamOptions = Pick<AskOptions, 'accept' | 'signal'> & {
  readonly take: (part: Buffer) => Promise<void>
}

/** It has all rights, so that an answer depends on the server only (remote_available_controller.go). */
const aggregator: Identity = { user: 'system:kube-aggregator', groups: ['system:masters'] }
const answerMs = 5_000

export function extensionServers({ connections, client }: ExtensionServerNeeds): ExtensionServers {
  const contexts = new WeakMap<APIServiceSpec, { readonly issued: Issued; readonly context: SecureContext }>()
  const contextOf = async (spec: APIServiceSpec) => {
    const issued = await client()
    const kept = contexts.get(spec)
    if (kept?.issued === issued) return kept.context
    const ca = spec.caBundle ? { ca: Buffer.from(spec.caBundle, 'base64') } : {}
    const context = createSecureContext({ ...ca, cert: issued.certificate, key: issued.key })
    contexts.set(spec, { issued, context })
    return context
  }
  /** `act` with an encrypted connection, which ends with it. */
  const connected = async <T>(
    apiService: StoredApiService,
    signal: AbortSignal,
    act: (stream: Duplex) => Promise<T>,
  ) => {
    const connection = await servers.connect(apiService, { identity: aggregator, signal })
    connection.on('error', () => undefined) // what reads it fails
    let encrypted: Duplex | undefined
    // A reader of the encrypted stream does not notice that the connection below it was destroyed.
    const stop = () => {
      encrypted?.destroy(new Error('the request was given up'))
      connection.destroy()
    }
    signal.addEventListener('abort', stop, { once: true })
    try {
      encrypted = await encryptedConnection(connection, await servers.trust(apiService))
      if (signal.aborted) stop()
      return await act(encrypted)
    } finally {
      signal.removeEventListener('abort', stop)
      connection.destroy()
    }
  }
  const servers: ExtensionServers = {
    connect({ spec }, sender) {
      const { namespace = '', name = '', port = 443 } = spec.service ?? {}
      return connections.connect({ namespace, name }, port, sender.signal, sender)
    },
    async trust({ spec }) {
      const secureContext = await contextOf(spec)
      return { secureContext, servername: hostOf(spec), rejectUnauthorized: spec.insecureSkipTLSVerify !== true }
    },
    ask: (apiService, path, { signal, ...asked }) =>
      withDeadline(answerMs, signal, (own) =>
        connected(apiService, own, (stream) => answerTo(stream, path, { ...asked, host: hostOf(apiService.spec) })),
      ),
    stream: (apiService, path, { signal, accept, take }) =>
      withOwnSignal(signal, async (own) => {
        const stop = startDeadline(answerMs, () => own.abort(new Error(`no answer within ${answerMs / 1000} s`)))
        try {
          return await connected(apiService, own.signal, async (stream) => {
            const asked = { accept, host: hostOf(apiService.spec) }
            const answer = await new Promise<IncomingMessage>((onAnswer, onFailure) => {
              send(stream, path, asked, { onAnswer, onFailure })
            })
            stop()
            const code = answer.statusCode ?? 0
            if (code === 200) await takeParts(answer, take)
            return { code }
          })
        } finally {
          stop()
        }
      }),
  }
  return servers
}

/** The name that its certificate must have. */
export function hostOf({ service }: APIServiceSpec): string {
  return `${service?.name ?? ''}.${service?.namespace ?? ''}.svc`
}

type Asked = Pick<AskOptions, 'accept' | 'method' | 'body' | 'ifNoneMatch'> & { readonly host: string }

type Listeners = { readonly onAnswer: (answer: IncomingMessage) => void; readonly onFailure: (error: Error) => void }

/** Failures are reported also after the answer began. The function that it returns ends the request with an error. */
function send(
  stream: Duplex,
  path: string,
  { method = 'GET', accept, body, ifNoneMatch, host }: Asked,
  { onAnswer, onFailure }: Listeners,
): (error: Error) => void {
  const text = body === undefined ? '' : JSON.stringify(body)
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const length = ['Content-Type', contentType, 'Content-Length', String(Buffer.byteLength(text))]
  const own = ['Host', host, 'Accept', accept, 'User-Agent', 'bramble-controller-aggregator', 'Connection', 'close']
  const present = ifNoneMatch === undefined ? [] : ['If-None-Match', ifNoneMatch]
  const headers = withRemoteUser([...own, ...present, ...(text === '' ? [] : length)], aggregator)
  const asked = request({ createConnection: () => stream, method, path, headers })
  limitInformational(asked)
  // Not once: it may fail again while its socket is torn down.
  asked.on('error', onFailure)
  asked.once('upgrade', () => void stream.destroy(new Error('an upgrade that was not requested')))
  asked.once('response', (answer) => onAnswer(answer.on('error', onFailure)))
  stream.once('close', () => onFailure(new Error('the connection was closed')))
  asked.end(text)
  return (error) => void asked.destroy(error)
}

function answerTo(
  stream: Duplex,
  path: string,
  { mostBytes, ...asked }: Asked & Pick<AskOptions, 'mostBytes'>,
): Promise<ExtensionAnswer> {
  return new Promise((resolve, onFailure) => {
    const fail = send(stream, path, asked, {
      onFailure,
      onAnswer(answer) {
        const bytes = collectedBytes(mostBytes)
        answer.on('data', (part: Buffer) => {
          if (bytes.add(part)) return
          fail(new Error(`the answer ${bytes.isCutUp ? cutUp : `is longer than ${mostBytes} bytes`}`))
        })
        answer.once('end', () => {
          resolve({ code: answer.statusCode ?? 0, body: bytes.take(), etag: entityTag(answer.headers.etag) })
        })
      },
    })
  })
}

/** One that can be sent back (RFC 9110, 8.8.3). */
function entityTag(given: string | undefined): string | undefined {
  return given !== undefined && given.length <= longestReason && /^(W\/)?"[!#-~]*"$/.test(given) ? given : undefined
}

const cutUp = 'comes in too many small pieces'

async function takeParts(answer: IncomingMessage, take: StreamOptions['take']): Promise<void> {
  const isFine = pieceMeter()
  for await (const part of answer) {
    if (!isFine((part as Buffer).length)) throw new Error(`the answer ${cutUp}`)
    await take(part as Buffer)
  }
}

const longestReason = 512

/** Why a server did not answer, without the addresses that differ from one attempt to the next. */
export function boundedReason(message: string): string {
  return clipped(message.replace(/[^\x20-\x7e]/g, ' '), longestReason)
}
