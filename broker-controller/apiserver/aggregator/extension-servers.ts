/** Connections to extension servers, through their Services, as the front proxy. */
import { request } from 'node:http'
import type { Duplex } from 'node:stream'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Identity } from '../../../api/identity.ts'
import { clipped } from '../../../api/problem.ts'
import type { APIServiceSpec } from '../../../api/registration/api-service.ts'
import type { Issued } from '../../../certs/issue.ts'
import { withDeadline } from '../../../daemon/deadline.ts'
import { collectedBytes } from '../../../daemon/http/collected-bytes.ts'
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

export type ExtensionAnswer = { readonly code: number; readonly body: Buffer }

export interface ExtensionServers {
  /** Before TLS. Rejects with the ApiError of the Service. */
  connect(apiService: StoredApiService, sender: StreamSender): Promise<Duplex>
  /** How its server proves who it is, and what this API shows to it. */
  trust(apiService: StoredApiService): Promise<ServerTrust>
  /** One request by this API itself, within 5 s and so many bytes. Rejects with what went wrong. */
  ask(apiService: StoredApiService, path: string, more: AskOptions): Promise<ExtensionAnswer>
}

export type AskOptions = {
  readonly accept: string
  readonly mostBytes: number
  readonly signal: AbortSignal
  /** undefined: GET. */
  readonly method?: 'GET' | 'DELETE'
  /** In JSON. */
  readonly body?: object
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
      withDeadline(answerMs, signal, async (own) => {
        const connection = await servers.connect(apiService, { identity: aggregator, signal: own })
        connection.on('error', () => undefined) // what reads it fails
        const stop = () => connection.destroy()
        own.addEventListener('abort', stop, { once: true })
        try {
          const stream = await encryptedConnection(connection, await servers.trust(apiService))
          return await answerTo(stream, path, { ...asked, host: hostOf(apiService.spec) })
        } finally {
          own.removeEventListener('abort', stop)
          connection.destroy()
        }
      }),
  }
  return servers
}

/** The name that its certificate must have. */
export function hostOf({ service }: APIServiceSpec): string {
  return `${service?.name ?? ''}.${service?.namespace ?? ''}.svc`
}

type Asked = Omit<AskOptions, 'signal'> & { readonly host: string }

function answerTo(
  stream: Duplex,
  path: string,
  { method = 'GET', accept, body, mostBytes, host }: Asked,
): Promise<ExtensionAnswer> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const length = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(text))]
  const own = ['Host', host, 'Accept', accept, 'User-Agent', 'bramble-controller-aggregator', 'Connection', 'close']
  return new Promise((resolve, reject) => {
    const headers = withRemoteUser([...own, ...(text === '' ? [] : length)], aggregator)
    const asked = request({ createConnection: () => stream, method, path, headers })
    limitInformational(asked)
    // Not once: it may fail again while its socket is torn down.
    asked.on('error', reject)
    asked.once('upgrade', () => void stream.destroy(new Error('an upgrade that was not requested')))
    asked.once('response', (answer) => {
      const bytes = collectedBytes(mostBytes)
      answer.on('data', (part: Buffer) => {
        if (bytes.add(part)) return
        const because = bytes.isCutUp ? 'comes in too many small pieces' : `is longer than ${mostBytes} bytes`
        asked.destroy(new Error(`the answer ${because}`))
      })
      answer.on('error', reject)
      answer.once('end', () => resolve({ code: answer.statusCode ?? 0, body: bytes.take() }))
    })
    stream.once('close', () => reject(new Error('the connection was closed')))
    asked.end(text)
  })
}

const longestReason = 512

/** Why a server did not answer, without the addresses that differ from one attempt to the next. */
export function boundedReason(message: string): string {
  return clipped(message.replace(/[^\x20-\x7e]/g, ' '), longestReason)
}
