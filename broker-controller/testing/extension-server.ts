/**
 * An extension server as sample-apiserver is one: it takes users from the front proxy alone, and serves objects of the kind Flunder, which
 * it keeps in memory.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { isObject, type JsonObject, parseJson } from '../../api/text/json.ts'
import { type Authority, openAuthority } from '../../certs/authority.ts'
import { issueServer } from '../../certs/issue.ts'

export const wardle = { group: 'wardle.example.com', version: 'v1alpha1' } as const
export const wardlePath = `/apis/${wardle.group}/${wardle.version}`

export type SeenRequest = {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
}

export type ExtensionServerSettings = {
  /** In which it makes its own authority. */
  readonly folder: string
  /** The authority of the front proxy, PEM. */
  readonly proxyAuthority: string
  /** Host names of its certificate. */
  readonly names: readonly string[]
  readonly address?: string
  /** Answers instead; false: it leaves the request to the server. */
  readonly respond?: (request: IncomingMessage, response: ServerResponse) => boolean
}

export interface ExtensionServer {
  readonly port: number
  /** Certificate of its authority, as in an APIService. */
  readonly caBundle: string
  /** Those of the front proxy. */
  readonly seen: readonly SeenRequest[]
  /** Connections so far, before TLS. */
  connections(): number
  stop(): Promise<void>
}

const resources = [
  {
    name: 'flunders',
    singularName: 'flunder',
    namespaced: true,
    kind: 'Flunder',
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
    shortNames: ['fl'],
  },
]
const aggregated = {
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  items: [
    {
      metadata: { name: wardle.group },
      versions: [
        {
          version: wardle.version,
          freshness: 'Current',
          resources: resources.map(({ name, singularName, kind, verbs, shortNames }) => ({
            ...{ resource: name, singularResource: singularName, scope: 'Namespaced', verbs, shortNames },
            responseKind: { ...wardle, kind },
          })),
        },
      ],
    },
  ],
}
const description = {
  openapi: '3.0.0',
  info: { title: 'wardle', version: 'v1' },
  paths: Object.fromEntries(
    ['/flunders', '/namespaces/{namespace}/flunders'].map((place) => [
      `${wardlePath}${place}`,
      { get: { responses: {}, 'x-kubernetes-group-version-kind': { ...wardle, kind: 'Flunder' } } },
    ]),
  ),
  components: {
    schemas: {
      'com.example.wardle.v1alpha1.Flunder': {
        type: 'object',
        description: 'A flunder for testing',
        properties: { spec: { type: 'object', description: 'What it is' } },
        'x-kubernetes-group-version-kind': [{ ...wardle, kind: 'Flunder' }],
      },
    },
  },
}

const swagger = {
  swagger: '2.0',
  info: { title: 'wardle', version: 'v1' },
  paths: {
    [`${wardlePath}/namespaces/{namespace}/flunders`]: {
      get: {
        operationId: 'listWardleFlunder',
        parameters: [{ $ref: '#/parameters/pretty' }],
        responses: {
          200: { description: 'OK', schema: { $ref: '#/definitions/com.example.wardle.v1alpha1.Flunder' } },
        },
      },
    },
    '/version/': { get: { responses: { 200: { description: 'OK' } } } },
  },
  definitions: {
    'com.example.wardle.v1alpha1.Flunder': {
      type: 'object',
      // kubectl refuses an object with a field that this does not name.
      properties: {
        apiVersion: { type: 'string' },
        kind: { type: 'string' },
        metadata: { $ref: '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' },
        spec: { type: 'object' },
        status: { type: 'object' },
      },
      'x-kubernetes-group-version-kind': [{ ...wardle, kind: 'Flunder' }],
    },
    'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta': { type: 'object', description: 'That of the server' },
  },
  parameters: { pretty: { name: 'pretty', in: 'query', type: 'string' } },
}

export async function startExtensionServer(settings: ExtensionServerSettings): Promise<ExtensionServer> {
  const { folder, proxyAuthority, names, address = '127.0.0.1', respond } = settings
  const authority: Authority = await openAuthority(folder, Date.now())
  const { certificate: cert, key } = issueServer(authority, { names: [...names], nowMs: Date.now() })
  const seen: SeenRequest[] = []
  const flunders = flunderStore()
  const server = createServer({ cert, key, ca: proxyAuthority, requestCert: true, rejectUnauthorized: false })
  let connections = 0
  server.on('connection', () => connections++)
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!isFrontProxy(request.socket as TLSSocket)) {
      return void response.writeHead(401).end('the client is not the front proxy')
    }
    const { method = '', url = '', headers } = request
    seen.push({ method, url, headers })
    if (respond?.(request, response)) return
    const [path = ''] = url.split('?')
    if (path === '/apis') return sendJson(response, 200, aggregated)
    if (path === wardlePath) {
      const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: `${wardle.group}/${wardle.version}` }
      return sendJson(response, 200, { ...list, resources })
    }
    if (path === '/openapi/v2') {
      const etag = '"1"'
      response.setHeader('etag', etag)
      return headers['if-none-match'] === etag ? void response.writeHead(304).end() : sendJson(response, 200, swagger)
    }
    if (path === '/openapi/v3') {
      const place = `apis/${wardle.group}/${wardle.version}`
      return sendJson(response, 200, { paths: { [place]: { serverRelativeURL: `/openapi/v3/${place}?hash=AB12` } } })
    }
    if (path === `/openapi/v3${wardlePath}`) return sendJson(response, 200, description)
    if (!path.startsWith(`${wardlePath}/`)) return sendJson(response, 404, statusOf(404, 'not found'))
    void flunders.answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  return {
    port: (server.address() as AddressInfo).port,
    caBundle: Buffer.from(authority.certificate).toString('base64'),
    seen,
    connections: () => connections,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function isFrontProxy(socket: TLSSocket): boolean {
  return socket.authorized && socket.getPeerCertificate().subject.CN === 'front-proxy-client'
}

/** The objects, and who watches them. */
function flunderStore() {
  const objects = new Map<string, JsonObject>()
  const watches = new Set<ServerResponse>()
  const history: { readonly version: number; readonly line: string }[] = []
  let version = 1
  const put = (key: string, object: JsonObject, type: 'ADDED' | 'MODIFIED' | 'DELETED') => {
    version += 1
    const stored = { ...object, metadata: { ...metadataOf(object), resourceVersion: String(version) } }
    if (type === 'DELETED') objects.delete(key)
    else objects.set(key, stored)
    const line = `${JSON.stringify({ type, object: stored })}\n`
    history.push({ version, line })
    for (const watch of watches) watch.write(line)
    return stored
  }
  const create = (namespace: string, object: JsonObject) => {
    const sent = metadataOf(object)
    const made = { creationTimestamp: new Date().toISOString(), uid: randomUUID() }
    return put(`${namespace}/${sent['name']}`, { ...object, metadata: { ...made, ...sent, namespace } }, 'ADDED')
  }
  const watch = (response: ServerResponse, from: number) => {
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    for (const { line } of history.filter((one) => one.version > from)) response.write(line)
    watches.add(response.once('close', () => watches.delete(response)))
  }
  const listOf = (prefix: string) => {
    const items = [...objects].filter(([key]) => key.startsWith(prefix)).map(([, object]) => object)
    const kind = { kind: 'FlunderList', apiVersion: `${wardle.group}/${wardle.version}` }
    return { ...kind, metadata: { resourceVersion: String(version) }, items }
  }
  return {
    async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const [path = '', query = ''] = (request.url ?? '').split('?')
      const [namespaces, namespace = '', , name = ''] = path.slice(wardlePath.length + 1).split('/')
      const key = `${namespace}/${name}`
      const object = objectOf(parseJson(await textOf(request)))
      const found = objects.get(key)
      if (request.method === 'POST') return sendJson(response, 201, create(namespace, object))
      if (name === '' || namespaces !== 'namespaces') {
        const options = new URLSearchParams(query)
        if (options.has('watch')) return watch(response, Number(options.get('resourceVersion') || version))
        return sendJson(response, 200, listOf(namespaces === 'namespaces' ? `${namespace}/` : ''))
      }
      if (found === undefined) return sendJson(response, 404, statusOf(404, `flunders "${name}" not found`))
      if (request.method === 'DELETE') return sendJson(response, 200, put(key, found, 'DELETED'))
      if (request.method === 'GET') return sendJson(response, 200, found)
      const metadata = { ...metadataOf(found), ...metadataOf(object) }
      return sendJson(response, 200, put(key, { ...found, ...object, metadata }, 'MODIFIED'))
    },
  }
}

function metadataOf({ metadata }: JsonObject): JsonObject {
  return objectOf(metadata)
}

function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}

function sendJson(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function statusOf(code: number, message: string) {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason: 'NotFound', message }
}
