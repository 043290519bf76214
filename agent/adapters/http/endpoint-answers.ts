/** What the agent answers to HTTP requests, by the path and by where the request came from. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { storyOf } from '../../../daemon/log.ts'
import { metricsContentType } from '../../../daemon/prometheus-text.ts'

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
    /** `machine`: under node_exporter's names; `agent`: under the kubelet's; without: both. */
    readonly metrics: (part?: 'machine' | 'agent') => Promise<string>
    readonly cadvisor: () => Promise<string>
    readonly resource: () => Promise<string>
    readonly probes: () => Promise<string>
  }
  /** The configuration as a KubeletConfiguration (kubelet.config.k8s.io/v1beta1). */
  readonly configz: () => unknown
  /** The findings of the doctor, examined now: a DoctorReport. */
  readonly doctor: () => Promise<unknown>
  /** Below /var/log; undefined: there is no such file or folder. */
  readonly logs: (path: string) => Promise<NodeLog | undefined>
  /** What the agent has received of the fleet's network: for its command `network`. */
  readonly network: () => AsyncIterable<Uint8Array>
}

export type NodeLog =
  /** Names of folders end with a slash. */
  | { readonly kind: 'folder'; readonly names: readonly string[] }
  | { readonly kind: 'file'; readonly bytes: number; readonly pieces: AsyncIterable<Uint8Array> }

/**
 * `port`: any user of the machine. `socket`: the agent's own user. `controller`: a session, whose user may read `nodes/proxy`.
 */
export type Door = { readonly reach: 'port' | 'socket'; readonly host: string } | { readonly reach: 'controller' }

/** Never rejects. */
export async function answerFromNode(
  view: EndpointView,
  door: Door,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = await answerTo(view, door, request).catch((error): Answer => ({ status: 500, text: storyOf(error) }))
  response.writeHead(answer.status, {
    'content-type': answer.metrics !== undefined ? metricsContentType : (answer.contentType ?? typeOf(answer)),
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    ...(answer.status === 405 ? { allow: 'GET' } : {}),
    ...(answer.location !== undefined && { location: answer.location }),
  })
  if (answer.pieces !== undefined) return sendPieces(answer.pieces, request, response)
  response.end(answer.metrics ?? (answer.json === undefined ? `${answer.text ?? ''}\n` : JSON.stringify(answer.json)))
}

async function sendPieces(
  pieces: AsyncIterable<Uint8Array>,
  { method }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    for await (const piece of pieces) {
      if (method === 'HEAD' || response.destroyed) break
      if (!response.write(piece)) await drained(response)
    }
    response.end()
  } catch {
    response.destroy() // the file cannot be read further: the reader must not take what it has for all of it
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.once('drain', done).once('close', done)
  })
}

function typeOf({ json }: Answer): string {
  return json === undefined ? plain : 'application/json'
}

const plain = 'text/plain; charset=utf-8'

type Answer = {
  readonly status: number
  readonly text?: string
  readonly json?: unknown
  readonly metrics?: string
  readonly pieces?: AsyncIterable<Uint8Array>
  readonly contentType?: string
  readonly location?: string
}

async function answerTo(
  view: EndpointView,
  door: Door,
  { method, url = '/', headers }: IncomingMessage,
): Promise<Answer> {
  // DNS rebinding: a web page in a browser on this machine may connect with its own host name in the Host header.
  if (door.reach !== 'controller' && !isOurs(headers.host, door.host)) {
    return { status: 403, text: 'Ask for localhost or the address itself' }
  }
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'This endpoint is read-only' }
  const [path = '', query = ''] = url.split('?', 2)
  const asked = path.replace(/(?<=.)\/$/, '')
  const isRestricted = notOnPort.some((one) => asked === one || asked.startsWith(`${one}/`))
  if (door.reach === 'port' && isRestricted) return { status: 403, text: forOwnUser }
  if (asked === '/logs' || asked.startsWith('/logs/')) return logAnswer(view, path)
  if (asked === '/network' && door.reach === 'socket')
    return { status: 200, contentType: 'application/x-ndjson', pieces: view.network() }
  switch (asked) {
    case '/healthz': {
      const problems = view.problems()
      return problems.length === 0 ? { status: 200, text: 'ok' } : { status: 500, text: problems.join('\n') }
    }
    case '/pods':
      return { status: 200, json: { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: view.pods() } }
    case '/spec':
      return { status: 200, json: view.spec() }
    case '/configz':
      return { status: 200, json: { kubeletconfig: view.configz() } }
    case '/doctor':
      return { status: 200, json: await view.doctor() }
    case '/stats/summary':
      return { status: 200, json: await view.summary(new URLSearchParams(query).get('only_cpu_and_memory') === 'true') }
    case '/metrics':
      return { status: 200, metrics: await view.scrapes.metrics(partIn(query)) }
    case '/metrics/cadvisor':
      return { status: 200, metrics: await view.scrapes.cadvisor() }
    case '/metrics/resource':
      return { status: 200, metrics: await view.scrapes.resource() }
    case '/metrics/probes':
      return { status: 200, metrics: await view.scrapes.probes() }
    default:
      return { status: 404, text: `Nothing here; there are ${paths}` }
  }
}

/** `part`; both parts without it, or with another value. */
function partIn(query: string): 'machine' | 'agent' | undefined {
  const part = new URLSearchParams(query).get('part')
  return part === 'machine' || part === 'agent' ? part : undefined
}

/** As Go's http.FileServer, which the kubelet uses: a folder is a list of links, relative to its path with a slash. */
async function logAnswer(view: EndpointView, path: string): Promise<Answer> {
  const name = decoded(path.slice('/logs'.length))
  const found = name === undefined ? undefined : await view.logs(name)
  if (found === undefined) return { status: 404, text: '404 page not found' }
  if (found.kind === 'file') return { status: 200, contentType: plain, pieces: found.pieces }
  if (!path.endsWith('/')) return { status: 301, location: `${path.split('/').at(-1)}/`, text: '' }
  const links = found.names.map(
    (one) => `<a href="${encodeURI(`./${one}`).replace(/[?#]/g, encodeURIComponent)}">${escaped(one)}</a>`,
  )
  return { status: 200, contentType: 'text/html; charset=utf-8', text: ['<pre>', ...links, '</pre>'].join('\n') }
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const notOnPort = ['/pods', '/spec', '/configz', '/logs', '/doctor', '/network']
const forOwnUser =
  "Pods contain environment values, which other users must not read: use the agent's socket, 'sudo curl --unix-socket /run/bramble/ID.sock http://localhost/pods' (the agent's log names it)"
const paths =
  '/healthz, /pods, /spec, /configz, /doctor, /logs/, /stats/summary, /metrics, /metrics/cadvisor, /metrics/resource and /metrics/probes'

function isOurs(header: string | undefined, host: string): boolean {
  const name = (header ?? '')
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase()
  return ['localhost', '127.0.0.1', '::1', host].includes(name)
}
