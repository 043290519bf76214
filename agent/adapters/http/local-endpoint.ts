/**
 * Read-only HTTP on this machine. Any local user, and any pod on the host's network, can connect to a port of 127.0.0.1, so it
 * serves only health and metrics. Pod specifications, which contain environment values, are served on a unix socket for the
 * agent's own user.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { aborted } from '../../../daemon/aborted.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import { metricsContentType } from '../../../daemon/prometheus-text.ts'
import { boundConnections } from './bounded-connections.ts'
import { listenPrivately } from './local-socket.ts'

export type EndpointView = {
  /** Why the agent is unhealthy; empty if it is healthy. */
  readonly problems: () => readonly string[]
  /** The desired pods of this node, with their status. */
  readonly pods: () => readonly unknown[]
  /** Machine information in cAdvisor's format. */
  readonly spec: () => unknown
  /** Resource usage: the Summary of stats/v1alpha1. `brief`: CPU and memory only. */
  readonly summary: (brief: boolean) => Promise<unknown>
  /** Metrics in Prometheus' text format. */
  readonly scrapes: {
    readonly metrics: () => Promise<string>
    readonly cadvisor: () => Promise<string>
    readonly resource: () => Promise<string>
  }
}

export type LocalEndpointNeeds = { readonly view: EndpointView; readonly log: Log }
export type LocalEndpointSettings = {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The path of the socket that serves everything; short enough for a socket address (107 bytes including the random suffix). */
  readonly socketPath: string
}

export interface LocalEndpoint {
  /** Undefined while nothing listens. */
  url(): string | undefined
  run(signal: AbortSignal): Promise<void>
}

/** Each request may read all pods; a person and a scraper need two or three concurrent ones. */
const mostConnections = 64

type Reach = 'port' | 'socket'

/** The agent runs without a port or socket that it cannot open: its pods have precedence over queries. */
export function localEndpoint({ view, log }: LocalEndpointNeeds, settings: LocalEndpointSettings): LocalEndpoint {
  const { host, port, socketPath } = settings
  let url: string | undefined

  const served = (reach: Reach) => {
    const server = createServer(
      { requestTimeout: 5_000, headersTimeout: 5_000, keepAliveTimeout: 1_000 },
      (request, response) => void answer(view, { reach, host }, request, response),
    )
    boundConnections(server, mostConnections)
    return server
  }

  const openPort = async (server: Server) => {
    try {
      const at = await listening(server, host, port)
      url = `http://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`
      log.info('Local endpoint open', { url })
    } catch (error) {
      log.error('The local endpoint cannot be opened, going on without it', {
        error,
        remedy: `Another agent, or a kubelet, may have port ${port}: choose another with --healthz-port, or 0 for any`,
      })
    }
  }

  /** Resolves with a function that removes it. */
  const openSocket = async (server: Server): Promise<() => Promise<void>> => {
    try {
      const remove = await listenPrivately(server, socketPath)
      log.info('Local socket open', { path: socketPath })
      return remove
    } catch (error) {
      log.warn('The local socket cannot be opened, going on without it', { path: socketPath, error })
      return async () => undefined
    }
  }

  return {
    url: () => url,
    async run(signal) {
      const servers = { port: served('port'), socket: served('socket') }
      const [removeSocket] = await Promise.all([openSocket(servers.socket), openPort(servers.port)])
      await aborted(signal)
      url = undefined
      await removeSocket()
      for (const server of [servers.port, servers.socket]) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

type Door = { readonly reach: Reach; readonly host: string }

async function answer(
  view: EndpointView,
  door: Door,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = await answerTo(view, door, request).catch((error) => ({ status: 500, text: storyOf(error) }) as Answer)
  const body = answer.metrics ?? (answer.json === undefined ? `${answer.text ?? ''}\n` : JSON.stringify(answer.json))
  const isText = answer.json === undefined
  response.writeHead(answer.status, {
    'content-type': answer.metrics !== undefined ? metricsContentType : isText ? plain : 'application/json',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    ...(answer.status === 405 ? { allow: 'GET' } : {}),
  })
  response.end(body)
}

const plain = 'text/plain; charset=utf-8'

type Answer = {
  readonly status: number
  readonly text?: string
  readonly json?: unknown
  readonly metrics?: string
}

async function answerTo(
  view: EndpointView,
  { reach, host }: Door,
  { method, url = '/', headers }: IncomingMessage,
): Promise<Answer> {
  // DNS rebinding: a web page in a browser on this machine may connect with its own host name in the Host header.
  if (!isOurs(headers.host, host)) return { status: 403, text: 'Ask for localhost or the address itself' }
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'This endpoint is for reading only' }
  const [path = '', query = ''] = url.split('?', 2)
  const asked = path.replace(/(?<=.)\/$/, '')
  if (reach === 'port' && onSocketOnly.includes(asked)) return { status: 403, text: forOwnUser }
  switch (asked) {
    case '/healthz': {
      const problems = view.problems()
      return problems.length === 0 ? { status: 200, text: 'ok' } : { status: 500, text: problems.join('\n') }
    }
    case '/pods':
      return { status: 200, json: { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: view.pods() } }
    case '/spec':
      return { status: 200, json: view.spec() }
    case '/stats/summary':
      return { status: 200, json: await view.summary(new URLSearchParams(query).get('only_cpu_and_memory') === 'true') }
    case '/metrics':
      return { status: 200, metrics: await view.scrapes.metrics() }
    case '/metrics/cadvisor':
      return { status: 200, metrics: await view.scrapes.cadvisor() }
    case '/metrics/resource':
      return { status: 200, metrics: await view.scrapes.resource() }
    default:
      return { status: 404, text: `Nothing here; there are ${paths}` }
  }
}

const onSocketOnly = ['/pods', '/spec']
const forOwnUser =
  "Pods contain environment values, which other users must not read: use the agent's socket, 'sudo curl --unix-socket /run/bramble/ID.sock http://localhost/pods' (the agent's log names it)"
const paths = '/healthz, /pods, /spec, /stats/summary, /metrics, /metrics/cadvisor and /metrics/resource'

function isOurs(header: string | undefined, host: string): boolean {
  const name = (header ?? '')
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase()
  return ['localhost', '127.0.0.1', '::1', host].includes(name)
}

function listening(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(new Error(`Cannot listen on ${host}:${port}`, { cause })))
    server.listen(port, host, () => {
      const address = server.address()
      if (address !== null && typeof address === 'object') resolve(address)
    })
  })
}
