import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { anonymous, type Identity } from '../../../api/identity.ts'
import type { APIServiceStatus } from '../../../api/registration/api-service.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { frontProxy } from '../../own-certificates/front-proxy.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { startExtensionServer, wardle, wardlePath } from '../../testing/extension-server.ts'
import type { RawRequest } from '../handlers/strategy.ts'
import { serviceConnections } from '../proxy/service-connections.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { aggregatedRouteOf } from './aggregated-route.ts'
import { followApiServices } from './api-services.ts'
import { extensionContent } from './extension-content.ts'
import { extensionDiscovery } from './extension-discovery.ts'
import { extensionObjects } from './extension-objects.ts'
import { extensionProxy } from './extension-proxy.ts'
import { extensionServers } from './extension-servers.ts'
import { remoteAvailability } from './remote-availability.ts'

const key = { namespace: '', name: `${wardle.version}.${wardle.group}` }
const jane: Identity = { user: 'jane', groups: ['devs', 'system:authenticated'], extra: { team: ['a'] } }
const available = {
  conditions: [{ type: 'Available', status: 'True', reason: 'Passed', message: 'all checks passed' }],
}

type Respond = (request: IncomingMessage, response: ServerResponse) => boolean
type Settings = {
  readonly respond?: Respond
  readonly names?: readonly string[]
  readonly spec?: object
  readonly status?: APIServiceStatus
}

/** An extension server behind a Service of a store in memory, and what leads to it. */
async function aWardle(t: Test, { respond, names = ['api.wardle.svc'], spec = {}, status = available }: Settings = {}) {
  const folder = testFolder(t)
  const log = quietLog(t)
  const proxy = frontProxy({ dataDir: join(folder, 'controller'), clock })
  const { certificate: proxyAuthority } = await proxy.authority()
  const server = await startExtensionServer({
    folder: join(folder, 'server'),
    proxyAuthority,
    names,
    ...(respond && { respond }),
  })
  const store = memoryStore({ clock })
  const meta = { namespace: 'wardle', name: 'api' }
  await store.create('services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta,
    spec: { ports: [{ port: 443, targetPort: server.port }] },
  })
  await store.create('endpoints', {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: meta,
    subsets: [{ addresses: [{ ip: '127.0.0.1' }], ports: [{ port: server.port }] }],
  })
  await store.create('apiservices', {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: key.name },
    spec: {
      ...wardle,
      groupPriorityMinimum: 2000,
      versionPriority: 10,
      service: { ...meta, port: 443 },
      caBundle: server.caBundle,
      ...spec,
    },
    status,
  })
  const { apiServices, loop } = await followApiServices({ store, clock, log })
  const servers = extensionServers({
    connections: serviceConnections({ store, clock, random: Math.random }),
    client: proxy.client,
  })
  const ending = new AbortController()
  setMaxListeners(0, ending.signal)
  t.teardown(async () => {
    ending.abort()
    await loop.run(AbortSignal.abort())
    await server.stop()
  })
  const through = extensionProxy({ servers, clock, mostAtOnce })
  const ask = (method: string, path: string, { headers = [], body, identity = jane }: Sent = {}) => {
    const [plain = '', query = ''] = path.split('?')
    const route = aggregatedRouteOf(
      method,
      plain.split('/').filter((name) => name !== ''),
      new URLSearchParams(query),
      apiServices,
    )
    if (route === undefined) throw new Error(`No route: ${path}`)
    const text = body === undefined ? undefined : JSON.stringify(body)
    const length = text === undefined ? [] : ['Content-Length', String(Buffer.byteLength(text))]
    const raw: RawRequest = {
      method,
      path: plain,
      query,
      headers: ['Host', 'fleet', ...headers, ...length],
      address: '192.0.2.1',
      body: text === undefined ? undefined : new PassThrough().end(text),
    }
    return through.answer({
      route,
      identity,
      streamOwner: identity.user,
      offered: undefined,
      raw,
      signal: ending.signal,
    })
  }
  return { store, server, servers, apiServices, ask, log, signal: ending.signal, stop: () => ending.abort() }
}

type Sent = { readonly headers?: readonly string[]; readonly body?: object; readonly identity?: Identity }

async function textOf(answer: ApiResponse): Promise<string> {
  if (answer.kind === 'text') return answer.text
  if (answer.kind !== 'proxied') throw new Error(`It is ${answer.kind}`)
  const parts: Uint8Array[] = []
  for await (const part of answer.pieces) parts.push(part)
  return Buffer.concat(parts).toString('utf8')
}

const mostAtOnce = 3
const flunders = `${wardlePath}/namespaces/default/flunders`
const flunder = { apiVersion: `${wardle.group}/${wardle.version}`, kind: 'Flunder', metadata: { name: 'a' } }

test('all verbs reach the extension server, which gets the user of the request, and nothing that a client claims', async (t) => {
  const { ask, server } = await aWardle(t)
  const claims = ['X-Remote-User', 'admin', 'X-Remote-Group', 'system:masters', 'Authorization', 'Bearer x']
  const made = await ask('POST', flunders, { body: flunder, headers: [...claims, 'Impersonate-User', 'root'] })
  t.match(made, { kind: 'proxied', code: 201 })
  await textOf(made)
  t.match(JSON.parse(await textOf(await ask('GET', flunders))), { items: [{ metadata: { name: 'a' } }] })
  t.match(await ask('GET', `${flunders}/b`).then(textOf), /flunders \\"b\\" not found/)
  await ask('DELETE', `${flunders}/a`).then(textOf)
  t.match(JSON.parse(await textOf(await ask('GET', `${flunders}?limit=5`))), { items: [] })
  t.same(
    server.seen.map(({ method, url }) => `${method} ${url}`),
    [`POST ${flunders}`, `GET ${flunders}`, `GET ${flunders}/b`, `DELETE ${flunders}/a`, `GET ${flunders}?limit=5`],
  )
  const { headers = {} } = server.seen[0] ?? {}
  t.match(headers, {
    'x-remote-user': 'jane',
    'x-remote-group': 'devs, system:authenticated',
    'x-remote-extra-team': 'a',
    'x-forwarded-for': '192.0.2.1',
  })
  t.notOk('authorization' in headers || 'impersonate-user' in headers)
})

test('a watch passes each event on, and ends the connection with its client', async (t) => {
  const { ask, stop } = await aWardle(t)
  const watch = await ask('GET', `${flunders}?watch=true`)
  if (watch.kind !== 'proxied') throw new Error(`It is ${watch.kind}`)
  const pieces = watch.pieces[Symbol.asyncIterator]()
  const next = pieces.next()
  await ask('POST', flunders, { body: flunder }).then(textOf)
  t.match(Buffer.from((await next).value).toString(), /^{"type":"ADDED"/)
  const end = pieces.next()
  stop()
  await t.rejects(end)
})

test('where an APIService is not available, its clients get the 503 of Kubernetes', async (t) => {
  const { ask, server } = await aWardle(t, { status: {} })
  t.match(await ask('GET', flunders), { kind: 'text', code: 503, text: 'service unavailable\n' })
  t.same(server.seen, [])
})

test('a server that is not the one of the caBundle, or of another name, gets no request', async (t) => {
  const other = await aWardle(t, { names: ['other.wardle.svc'] })
  await t.rejects(other.ask('GET', flunders), {
    reason: 'ServiceUnavailable',
    message: /error trying to reach service: /,
  })
  t.same(other.server.seen, [])
})

test('insecureSkipTLSVerify takes any server', async (t) => {
  const { ask } = await aWardle(t, { names: ['x'], spec: { caBundle: undefined, insecureSkipTLSVerify: true } })
  t.match(await ask('GET', flunders), { code: 200 })
})

test('a server that never answers holds its own group alone, and not without end', async (t) => {
  const held: ServerResponse[] = []
  let asked: () => void = () => {}
  const all = new Promise<void>((resolve) => {
    asked = resolve
  })
  const { ask, stop } = await aWardle(t, {
    respond: (_, response) => {
      if (held.push(response) === mostAtOnce) asked()
      return true
    },
  })
  const waiting = Array.from({ length: mostAtOnce }, () => ask('GET', `${flunders}?watch=1`).catch(() => 'ended'))
  await all
  await t.rejects(ask('GET', flunders), { reason: 'TooManyRequests', message: /has 3 requests under way/ })
  held[0]?.end()
  await Promise.race(waiting)
  stop()
  await Promise.all(waiting)
})

test('the condition of an APIService names why its server cannot be asked', async (t) => {
  const { store, servers, apiServices, log, signal } = await aWardle(t, { status: {} })
  const conditionIs = async (reason: string) => {
    for (;;) {
      const { status } = (await store.get('apiservices', key)) ?? {}
      const found = status?.conditions?.find(({ type }) => type === 'Available')
      if (found?.reason === reason) return found
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const running = remoteAvailability({ store, apiServices, servers, clock, log }).run(signal)
  t.match(await conditionIs('Passed'), { status: 'True', message: 'all checks passed' })
  const at = { namespace: 'wardle', name: 'api' }
  const endpoints = await store.get('endpoints', at)
  if (endpoints === undefined) throw new Error('They are gone')
  await store.update('endpoints', { ...endpoints, subsets: [] })
  t.match(await conditionIs('MissingEndpoints'), {
    status: 'False',
    message: 'endpoints for service/api in "wardle" have no addresses with port name ""',
  })
  await store.delete('endpoints', at)
  t.match(await conditionIs('EndpointsNotFound'), { message: 'cannot find endpoints for service/api in "wardle"' })
  const service = await store.get('services', at)
  if (service === undefined) throw new Error('It is gone')
  await store.update('services', { ...service, spec: { ports: [{ port: 1 }] } })
  t.match(await conditionIs('ServicePortError'), { message: 'service/api in "wardle" is not listening on port 443' })
  await store.delete('services', at)
  t.match(await conditionIs('ServiceNotFound'), { message: 'service/api in "wardle" is not present' })
  await store.delete('apiservices', key)
  t.equal(apiServices.remotes().length, 0)
  t.ok(running instanceof Promise)
})

test('a check that the server answers with an error fails with its code', async (t) => {
  let asked = 0
  const { store, servers, apiServices, log, signal } = await aWardle(t, {
    status: {},
    respond: (_, response) => {
      asked += 1
      response.writeHead(404).end()
      return true
    },
  })
  void remoteAvailability({ store, apiServices, servers, clock, log }).run(signal)
  for (;;) {
    const { status } = (await store.get('apiservices', key)) ?? {}
    const found = status?.conditions?.[0]
    if (found === undefined) {
      await new Promise((resolve) => setImmediate(resolve))
      continue
    }
    const url = `https://api.wardle.svc:443${wardlePath}`
    t.match(found, {
      status: 'False',
      reason: 'FailedDiscoveryCheck',
      message: `failing or missing response from ${url}: bad status from ${url}: 404`,
    })
    break
  }
  t.ok(asked >= 1 && asked <= 5, 'each attempt may meet another endpoint')
})

/** Resolves when discovery has what is expected of it. */
async function discovered(
  t: Test,
  settings: Settings,
  isThere: (found: { freshness: string; count: number }) => boolean,
) {
  const { apiServices, servers, log, signal, store } = await aWardle(t, settings)
  const discovery = extensionDiscovery({ apiServices, servers, clock, log })
  void discovery.run(signal)
  for (;;) {
    const [remote] = apiServices.remotes()
    if (remote === undefined) throw new Error('It is gone')
    const { freshness, resources } = discovery.versionOf(remote)
    if (isThere({ freshness, count: resources.length }))
      return { discovery, remote, resources, store, apiServices, servers }
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test('discovery keeps what a server serves, and marks it stale once that is not available', async (t) => {
  const found = await discovered(t, {}, ({ freshness }) => freshness === 'Current')
  const { discovery, remote, resources, store, apiServices } = found
  t.match(resources, [{ resource: 'flunders', scope: 'Namespaced', responseKind: { ...wardle, kind: 'Flunder' } }])
  t.equal(discovery.descriptionHash(remote), 'AB12')
  const description = discovery.description(remote)
  const { paths, definitions } = (await description?.parts()) ?? {}
  t.same(
    [...(paths ?? [])].map(([path]) => path),
    [`${wardlePath}/namespaces/{namespace}/flunders`],
  )
  t.equal(definitions?.size, 2)
  const conditions = [{ type: 'Available', status: 'False', reason: 'MissingEndpoints' }]
  await store.updateStatus('apiservices', { ...remote, status: { conditions } })
  for (;;) {
    const [now] = apiServices.remotes()
    if (now === undefined) throw new Error('It is gone')
    const { freshness, resources: kept } = discovery.versionOf(now)
    if (freshness === 'Stale') {
      t.same(kept, resources, 'clients go on with it')
      t.equal(discovery.description(now), description)
      break
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
})

test('the older form of discovery is read where a server has no other', async (t) => {
  const respond: Respond = ({ url }, response) => {
    if (url === '/apis') response.writeHead(404).end()
    return url === '/apis'
  }
  const { resources } = await discovered(t, { respond }, ({ freshness }) => freshness === 'Current')
  t.match(resources, [{ resource: 'flunders', shortNames: ['fl'], subresources: [] }])
})

test('a server that lists kinds of the fleet itself serves those of its own version only', async (t) => {
  const listed = (resource: string, group: string, kind: string) => ({
    ...{ resource, scope: 'Namespaced', verbs: ['delete', 'list', 'watch'] },
    responseKind: { group, version: 'v1', kind },
  })
  const groups = ['', 'apps', 'rbac.authorization.k8s.io'].map((name) => ({
    metadata: { name },
    versions: [{ version: 'v1', resources: [listed('pods', name, 'Pod')] }],
  }))
  const own = { metadata: { name: wardle.group }, versions: [{ ...wardle, resources: [listed('pods', '', 'Pod')] }] }
  const respond: Respond = ({ url }, response) => {
    if (url === '/apis') response.end(JSON.stringify({ items: [...groups, own] }))
    return url === '/apis'
  }
  const { discovery, apiServices, servers } = await discovered(t, { respond }, ({ count }) => count > 0)
  const objects = extensionObjects({ apiServices, discovery, servers, clock })
  t.match(objects.kinds(), [{ ...wardle, resource: 'pods', kind: 'Pod' }])
  t.equal(objects.kinds().length, 1)
  t.notOk(objects.serves('v1'))
  t.notOk(objects.serves('apps/v1'))
})

test('a description without end, too long, or of another type is left out, and nothing else', async (t) => {
  const chunk = Buffer.alloc(64 * 1024, ' ')
  const answers: { readonly [what: string]: (response: ServerResponse) => void } = {
    endless(response) {
      response.on('error', () => undefined)
      const more = () => {
        while (!response.destroyed && response.write(chunk)) {
          // Until its connection is full.
        }
      }
      response.on('drain', more)
      more()
    },
    'too long': (response) => response.on('error', () => undefined).end(Buffer.alloc(10_000_000, ' ')),
    'small pieces': ({ socket }) =>
      socket?.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(20_000)}`),
    HTML: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    protobuf: (response) => response.writeHead(200, { 'content-type': 'application/vnd' }).end(Buffer.from([0x0a, 3])),
    gzip: (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{"swagger":"2.0"}')),
    'another form': (response) => response.end('{"openapi":"3.0.0","paths":{}}'),
    redirection: (response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    'the end': ({ socket }) => socket?.destroy(),
  }
  for (const [what, answer] of Object.entries(answers)) {
    const respond: Respond = ({ url }, response) => {
      if (url === '/openapi/v2') answer(response)
      return url === '/openapi/v2'
    }
    const { discovery, remote } = await discovered(t, { respond }, ({ freshness }) => freshness === 'Current')
    t.equal(discovery.description(remote), undefined, what)
    t.equal(discovery.descriptionHash(remote), 'AB12', what)
  }
})

test('a discovery of 10 MB, of small pieces, or without end is given up', async (t) => {
  const { servers, apiServices, signal } = await aWardle(t, {
    respond({ url }, response) {
      if (url === '/large') {
        response.on('error', () => {})
        response.end(Buffer.alloc(10_000_000, ' '))
      }
      if (url === '/pieces')
        response.socket?.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(20_000)}`)
      if (url === '/hints')
        response.socket?.end(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(9)}HTTP/1.1 200 OK\r\n\r\n`)
      if (url === '/switch') response.socket?.end('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')
      if (url === '/closed') response.socket?.destroy()
      return url !== '/apis'
    },
  })
  const [remote] = apiServices.remotes()
  if (remote === undefined) throw new Error('It is gone')
  const get = (path: string) =>
    servers.ask(remote, path, { accept: 'application/json', mostBytes: 1024 * 1024, signal })
  await t.rejects(get('/large'), /the answer is longer than 1048576 bytes/)
  await t.rejects(get('/pieces'), /the answer comes in too many small pieces/)
  await t.rejects(get('/hints'), /too many 1xx informational responses/)
  await t.rejects(get('/switch'))
  await t.rejects(get('/closed'))
  t.match(await get('/apis'), { code: 200 })
})

test('the objects of a namespace are deleted by this API itself, and those of others stay', async (t) => {
  const { ask, server, servers, apiServices, signal } = await aWardle(t)
  for (const place of ['default/a', 'default/b', 'other/c']) {
    const [namespace, name] = place.split('/')
    const body = { ...flunder, metadata: { name } }
    await ask('POST', `${wardlePath}/namespaces/${namespace}/flunders`, { body }).then(textOf)
  }
  const resources = [{ resource: 'flunders', scope: 'Namespaced', verbs: ['list', 'delete'] }]
  const discovery = { versionOf: () => ({ freshness: 'Current' as const, resources }) }
  const content = extensionContent({ apiServices, discovery, servers })
  t.same(await content.remove('default', signal), { remaining: [], failures: [], undiscovered: [] })
  const left = JSON.parse(await ask('GET', `${wardlePath}/flunders`).then(textOf))
  t.match(left.items, [{ metadata: { namespace: 'other', name: 'c' } }])
  t.equal(left.items.length, 1)
  const deletion = server.seen.find(({ method }) => method === 'DELETE')
  t.match(deletion?.headers, { 'x-remote-user': 'system:kube-aggregator', 'content-type': 'application/json' })
})

test('objects are listed, watched, read, changed and deleted over the connection to their server', async (t) => {
  const { ask, server, servers, apiServices, signal } = await aWardle(t)
  const made = await ask('POST', flunders, { body: { ...flunder, metadata: { name: 'a' } } }).then(textOf)
  const { uid } = JSON.parse(made).metadata
  const resources = [
    {
      ...{ resource: 'flunders', scope: 'Namespaced', responseKind: { kind: 'Flunder' } },
      verbs: ['list', 'watch', 'delete'],
    },
  ]
  const versionOf = () => ({ freshness: 'Current' as const, resources })
  const discovery = { versionOf, onChange: () => () => undefined }
  const objects = extensionObjects({ apiServices, discovery, servers, clock })
  const [kind] = objects.kinds()
  if (kind === undefined) return t.fail('no kind')
  const { items, resourceVersion } = await objects.list(kind, signal)
  t.match(items, [{ metadata: { name: 'a', namespace: 'default', uid } }])
  const events: string[] = []
  const ending = new AbortController()
  const watching = objects.watch(
    kind,
    {
      resourceVersion,
      take({ type }) {
        events.push(type)
        if (type === 'DELETED') ending.abort()
      },
    },
    ending.signal,
  )
  const object = await objects.get(kind, { namespace: 'default', name: 'a' }, signal)
  if (object === undefined) return t.fail('not found')
  await objects.patch(kind, object, { finalizers: ['example.com/a'] }, signal)
  await objects.remove(kind, object, 'Background', signal)
  await watching.catch(() => undefined)
  t.same(events, ['MODIFIED', 'DELETED'])
  const connections = server.connections()
  await t.rejects(objects.watch(kind, { resourceVersion, take: () => undefined }, AbortSignal.abort()))
  t.equal(await objects.get(kind, { namespace: 'default', name: 'a' }, signal), undefined)
  t.equal(server.connections(), connections + 1, 'a request that was given up before connects to nothing')
})

test('an anonymous client stays anonymous', async (t) => {
  const { ask, server } = await aWardle(t)
  await ask('GET', flunders, { identity: anonymous }).then(textOf)
  t.match(server.seen[0]?.headers, { 'x-remote-user': 'system:anonymous', 'x-remote-group': 'system:unauthenticated' })
})
