/** Read-only HTTP for whoever is on this machine: is the agent well, what runs here, what is this machine? */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { aborted } from '../../daemon/aborted.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { metricsContentType } from '../../daemon/prometheus-text.ts'

export type LocalView = {
  /** Why the agent is not well; none when it is. */
  readonly problems: () => readonly string[]
  /** The pods this node runs, or shall run. */
  readonly pods: () => readonly unknown[]
  /** The machine, in cAdvisor's words. */
  readonly spec: () => unknown
  /** Who uses how much: stats/v1alpha1's Summary. `brief`: CPU and memory only. */
  readonly summary: (brief: boolean) => Promise<unknown>
  /** For Prometheus, in its text form. */
  readonly scrapes: {
    readonly metrics: () => Promise<string>
    readonly cadvisor: () => Promise<string>
    readonly resource: () => Promise<string>
  }
}

export type LocalEndpointNeeds = { readonly view: LocalView; readonly log: Log }
/** `port` 0: any that is free. */
export type LocalEndpointSettings = { readonly host: string; readonly port: number }

export interface LocalEndpoint {
  /** Undefined as long as nothing listens. */
  url(): string | undefined
  run(signal: AbortSignal): Promise<void>
}

/** The agent does without it when the port is taken: pods matter more than being asked about. */
export function localEndpoint({ view, log }: LocalEndpointNeeds, { host, port }: LocalEndpointSettings): LocalEndpoint {
  let url: string | undefined
  return {
    url: () => url,
    async run(signal) {
      const server = createServer(
        { requestTimeout: 5_000, headersTimeout: 5_000, keepAliveTimeout: 1_000 },
        (request, response) => void answer(view, host, request, response),
      )
      server.maxConnections = 64
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
      await aborted(signal)
      url = undefined
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function answer(
  view: LocalView,
  host: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const said = await answerTo(view, host, request).catch((error) => ({ status: 500, text: storyOf(error) }) as Answer)
  const body = said.metrics ?? (said.json === undefined ? `${said.text ?? ''}\n` : JSON.stringify(said.json))
  const isText = said.json === undefined
  response.writeHead(said.status, {
    'content-type': said.metrics !== undefined ? metricsContentType : isText ? plain : 'application/json',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    ...(said.status === 405 ? { allow: 'GET' } : {}),
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
  view: LocalView,
  host: string,
  { method, url = '/', headers }: IncomingMessage,
): Promise<Answer> {
  // A page in a browser on this machine may be led here under a name of its own; it then shows that name.
  if (!isOurs(headers.host, host)) return { status: 403, text: 'Ask for localhost or the address itself' }
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'This endpoint is for reading only' }
  const [path = '', query = ''] = url.split('?', 2)
  switch (path.replace(/(?<=.)\/$/, '')) {
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
