import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createHttp2Server, type Http2Server } from 'node:http2'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { issueServer } from '../../../certs/issue.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { until } from '../../testing/until.ts'
import { networkProbes } from './network-probes.ts'

const never = new AbortController().signal
const { ask } = networkProbes()
/** Deadline of answers that arrive: no machine stalls this long. */
const patienceMs = 60_000
/** That of tcpmux (RFC 1078), which only root can open: nothing listens there. */
const closedPort = 1

test('a TCP probe asks for a connection and nothing more', async (t) => {
  const port = await opened(t, createTcpServer())
  t.same(await ask({ kind: 'tcp', host: '127.0.0.1', port }, patienceMs, never), { result: 'success', message: '' })
  t.match(await ask({ kind: 'tcp', host: '127.0.0.1', port: closedPort }, patienceMs, never), {
    result: 'failure',
    message: /^dial tcp 127.0.0.1:\d+: .*ECONNREFUSED/,
  })
})

test('a probe that is cancelled before it starts opens no connection', async (t) => {
  const server = createTcpServer()
  let connections = 0
  server.on('connection', () => void connections++)
  const port = await opened(t, server)
  const at = { host: '127.0.0.1', port }
  const cancelled = { result: 'unknown', message: 'The probe was cancelled' }
  t.same(await ask({ kind: 'tcp', ...at }, patienceMs, AbortSignal.abort()), cancelled)
  t.same(await ask({ kind: 'grpc', ...at, service: '' }, patienceMs, AbortSignal.abort()), cancelled)
  await ask({ kind: 'tcp', ...at }, patienceMs, never)
  // The server takes connections in the order in which they were opened, and this one a moment after its client has it.
  await until('the server has a connection', () => connections > 0)
  t.equal(connections, 1, 'only that of the last probe')
})

test('an HTTP probe sends its user agent and its own headers, and takes 200 to 399 for well', async (t) => {
  const seen: unknown[] = []
  const server = createServer((request, response) => {
    seen.push({ url: request.url, agent: request.headers['user-agent'], own: request.headers['x-own'] })
    if (request.url === '/ill') response.statusCode = 500
    if (request.url === '/elsewhere') response.writeHead(302, { location: 'http://192.0.2.1/away' })
    if (request.url === '/here') response.writeHead(301, { location: '/ill' })
    if (request.url !== '/silent') response.end('body')
  })
  const port = await opened(t, server)
  const get = (path: string, timeoutMs = patienceMs) => {
    const headers = [{ name: 'X-Own', value: 'yes' }]
    return ask({ kind: 'http', scheme: 'http', host: '127.0.0.1', port, path, headers }, timeoutMs, never)
  }
  t.match(await get('/well'), { result: 'success' })
  t.match(await get('/ill'), { result: 'failure', message: 'HTTP probe failed with statuscode: 500' })
  t.match(await get('/here'), { result: 'failure' }, 'followed within the host')
  t.match(await get('/elsewhere'), { result: 'success' }, 'not followed to another')
  t.match(await get('/silent', 50), { result: 'failure', message: /no answer within 0.05s/ })
  t.match(seen[0], { url: '/well', agent: 'kube-probe/1.32', own: 'yes' })
})

test('a probe over TLS does not verify the certificate, and reads as much of a long answer as the kubelet', async (t) => {
  const folder = testFolder(t)
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  const { certificate, key } = issueServer(authority, { names: ['elsewhere'], nowMs: Date.now() })
  const server = createSecureServer({ cert: certificate, key }, (request, response) => {
    response.statusCode = request.url === '/ill' ? 500 : 200
    response.end('x'.repeat(100_000))
  })
  const port = await opened(t, server)
  const get = (path: string) =>
    ask({ kind: 'http', scheme: 'https', host: '127.0.0.1', port, path, headers: [] }, patienceMs, never)
  t.same(await get('/'), { result: 'success', message: '' })
  t.match(await get('/ill'), { result: 'failure', message: 'HTTP probe failed with statuscode: 500' })
})

test('a header that would begin another line, or another request, is not sent', async (t) => {
  const seen: unknown[] = []
  const server = createServer(({ method, url }, response) => {
    seen.push(`${method} ${url}`)
    response.end()
  })
  const port = await opened(t, server)
  const get = (name: string, value: string) => {
    const headers = [{ name, value }]
    return ask({ kind: 'http', scheme: 'http', host: '127.0.0.1', port, path: '/', headers }, patienceMs, never)
  }
  for (const value of [
    'a\r\nX-Other: b',
    'a\nX-Other: b',
    'a\r\n\r\nPOST /other HTTP/1.1\r\nHost: localhost\r\n',
    'a\0',
  ]) {
    t.match(await get('X-Own', value), { result: 'failure', message: /invalid header field value for "X-Own"/ })
  }
  t.match(await get('X Own', 'a'), { result: 'failure', message: /invalid header field name "X Own"/ })
  t.same(seen, [])
  t.match(await get('X-Own', 'a\tb, "é"'), { result: 'success' })
})

test('a gRPC probe asks for the health of a service', async (t) => {
  const asked: string[] = []
  const server = createHttp2Server()
  server.on('stream', (stream, headers) => {
    const body: Buffer[] = []
    stream.on('data', (chunk) => body.push(Buffer.from(chunk)))
    stream.on('end', () => {
      const service = Buffer.concat(body).subarray(7).toString()
      asked.push(`${headers[':path']} ${service}`)
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': service === 'none' ? '5' : '0' }))
      stream.end(service === 'none' ? '' : Buffer.of(0, 0, 0, 0, 2, 8, service === 'ill' ? 2 : 1))
    })
  })
  const port = await opened(t, server)
  const check = (service: string) => ask({ kind: 'grpc', host: '127.0.0.1', port, service }, patienceMs, never)
  t.same(await check('web'), { result: 'success', message: '' })
  t.match(await check('ill'), { result: 'failure', message: 'service unhealthy (responded with "NOT_SERVING")' })
  t.match(await check('none'), { result: 'failure', message: 'health rpc failed with status 5' })
  t.same(asked[0], '/grpc.health.v1.Health/Check web')
  t.match(await ask({ kind: 'grpc', host: '127.0.0.1', port: closedPort, service: '' }, patienceMs, never), {
    result: 'failure',
  })
})

test('a gRPC server that pushes a stream and fails it fails its probe only', async (t) => {
  const frame = (type: number, flags: number, stream: number, payload: readonly number[] = []) =>
    Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream, ...payload])
  const [internalError, endOfHeaders] = [2, 4]
  // PUSH_PROMISE of stream 2, for GET http://x/ (RFC 9113, 6.6).
  const pushed = frame(5, endOfHeaders, 1, [0, 0, 0, 2, 0x82, 0x84, 0x86, 0x41, 1, 'x'.charCodeAt(0)])
  const reset = (stream: number) => frame(3, 0, stream, [0, 0, 0, internalError])
  const failed = frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, internalError])
  for (const end of [[reset(2), reset(1)], [failed]]) {
    const server = createTcpServer((socket) => {
      socket
        .on('error', () => undefined)
        .once('data', () => {
          socket.write(Buffer.concat([frame(4, 0, 0), pushed]))
          setImmediate(() => socket.write(Buffer.concat(end)))
        })
    })
    const port = await opened(t, server)
    const answer = await ask({ kind: 'grpc', host: '127.0.0.1', port, service: '' }, patienceMs, never)
    t.equal(answer.result, 'failure')
  }
})

test('a probe may have more time than a timer can measure', async (t) => {
  const port = await opened(
    t,
    createServer((_, response) => void setImmediate(() => response.end('well'))),
  )
  const target = { kind: 'http', scheme: 'http', host: '127.0.0.1', port, path: '/', headers: [] } as const
  t.match(await ask(target, 2147483647000, never), { result: 'success' })
})

test('a probe that is cancelled has no result', async (t) => {
  const port = await opened(
    t,
    createServer(() => undefined),
  )
  const stop = new AbortController()
  const answer = ask(
    { kind: 'http', scheme: 'http', host: '127.0.0.1', port, path: '/', headers: [] },
    patienceMs,
    stop.signal,
  )
  stop.abort()
  t.match(await answer, { result: 'unknown' })
})

async function opened(t: Test, server: Server | Http2Server): Promise<number> {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

test('a status from 200 to 399 is a success, also a redirect without a place to go', async (t) => {
  const server = createServer((request, response) => {
    response.statusCode = Number(request.url?.slice(1))
    response.end()
  })
  const port = await opened(t, server)
  const get = async (status: number) => {
    const target = { kind: 'http', scheme: 'http', host: '127.0.0.1', port, path: `/${status}`, headers: [] } as const
    return (await ask(target, patienceMs, never)).result
  }
  t.same(await Promise.all([200, 204, 300, 399].map(get)), ['success', 'success', 'success', 'success'])
  t.same(await Promise.all([400, 404, 503].map(get)), ['failure', 'failure', 'failure'])
})

test('nine redirects within the host are followed, and a redirect to another host ends well', async (t) => {
  let requests = 0
  const server = createServer((request, response) => {
    requests++
    const left = Number(request.url?.slice(1))
    const location = left === 99 ? 'http://192.0.2.1/away' : `/${left - 1}`
    if (left > 0) response.writeHead(302, { location })
    response.end()
  })
  const port = await opened(t, server)
  const get = (path: string) =>
    ask({ kind: 'http', scheme: 'http', host: '127.0.0.1', port, path, headers: [] }, patienceMs, never)
  t.same(await get('/9'), { result: 'success', message: '' })
  t.equal(requests, 10)
  t.same(await get('/10'), {
    result: 'failure',
    message: `Get "http://127.0.0.1:${port}/0": stopped after 10 redirects`,
  })
  t.same(await get('/99'), {
    result: 'success',
    message: 'Probe terminated redirects to http://192.0.2.1/away',
    isWarning: true,
  })
})

test('a header of the pod replaces the one that a probe sends by itself', async (t) => {
  const seen: unknown[] = []
  const server = createServer(({ rawHeaders, url }, response) => {
    seen.push([url, ...rawHeaders])
    response.end()
  })
  const port = await opened(t, server)
  const get = (...headers: readonly { readonly name: string; readonly value: string }[]) =>
    ask({ kind: 'http', scheme: 'http', host: '127.0.0.1', port, path: '/a?b=c', headers }, patienceMs, never)
  await get()
  await get(
    { name: 'host', value: 'web' },
    { name: 'user-AGENT', value: 'mine' },
    { name: 'accept', value: 'text/html' },
  )
  t.same(seen, [
    ['/a?b=c', 'Host', `127.0.0.1:${port}`, 'User-Agent', 'kube-probe/1.32', 'Accept', '*/*', 'Connection', 'close'],
    ['/a?b=c', 'Connection', 'close', 'host', 'web', 'user-AGENT', 'mine', 'accept', 'text/html'],
  ])
})

test('a header may be given twice or empty, and those that belong to the connection are not sent', async (t) => {
  const seen: unknown[] = []
  const server = createServer(({ rawHeaders }, response) => {
    seen.push(rawHeaders)
    response.end()
  })
  const port = await opened(t, server)
  const headers = [
    ['X-Own', '1'],
    ['X-Own', '2'],
    ['User-Agent', ''],
    ['Accept', ''],
    ['Content-Length', '7'],
    ['Transfer-Encoding', 'chunked'],
    ['Host', ''],
  ].map(([name = '', value = '']) => ({ name, value }))
  const target = { kind: 'http', scheme: 'http', host: '127.0.0.1', port, path: '/', headers } as const
  t.match(await ask(target, patienceMs, never), { result: 'success' })
  t.same(seen, [['Host', `127.0.0.1:${port}`, 'Connection', 'close', 'X-Own', '1', 'X-Own', '2']])
})

test('a hook succeeds with any status, and has a user agent of its own', async (t) => {
  const seen: unknown[] = []
  const server = createServer(({ headers }, response) => {
    seen.push(headers['user-agent'])
    response.statusCode = 500
    response.end()
  })
  const port = await opened(t, server)
  const target = {
    kind: 'http',
    scheme: 'http',
    host: '127.0.0.1',
    port,
    path: '/',
    headers: [],
    isHook: true,
  } as const
  t.same(await ask(target, patienceMs, never), { result: 'success', message: '' })
  t.same(seen, ['kube-lifecycle/1.32'])
  t.match(await ask({ ...target, port: closedPort }, patienceMs, never), { result: 'failure' })
})

test('an IPv6 address has brackets in the message', async (t) => {
  const at = { host: '::1', port: 1 }
  const reason = async (target: Parameters<typeof ask>[0]) => (await ask(target, patienceMs, never)).message
  t.match(await reason({ kind: 'tcp', ...at }), /^dial tcp \[::1\]:1: /)
  t.match(
    await reason({ kind: 'http', scheme: 'https', path: '/x', headers: [], ...at }),
    /^Get "https:\/\/\[::1\]:1\/x": /,
  )
  t.match(await reason({ kind: 'grpc', service: '', ...at }), /^failed to connect service "\[::1\]:1": /)
})

test('an answer that is cut off or not HTTP is a failure', async (t) => {
  const answers = ['HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc', 'SSH-2.0-OpenSSH_9.2\r\n', '']
  for (const text of answers) {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(text))
    })
    const port = await opened(t, server)
    const target = { kind: 'http', scheme: 'http', host: '127.0.0.1', port, path: '/', headers: [] } as const
    t.match(await ask(target, patienceMs, never), { result: 'failure', message: /^Get "http:/ }, text)
  }
})

test('the health of a service is in the answer of gRPC, and its name may be long', async (t) => {
  const asked: Buffer[] = []
  let status = '0'
  let answer: Buffer = Buffer.of(0, 0, 0, 0, 2, 8, 1)
  const server = createHttp2Server()
  server.on('stream', (stream) => {
    const body: Buffer[] = []
    stream.on('data', (chunk) => body.push(Buffer.from(chunk)))
    stream.on('end', () => {
      asked.push(Buffer.concat(body))
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers(status === '' ? {} : { 'grpc-status': status }))
      stream.end(answer)
    })
  })
  const port = await opened(t, server)
  const check = async (service = '') =>
    (await ask({ kind: 'grpc', host: '127.0.0.1', port, service }, patienceMs, never)).message
  t.equal(await check('x'.repeat(300)), '')
  t.same(asked[0]?.subarray(0, 8), Buffer.from([0, 0, 0, 1, 0x2f, 0x0a, 0xac, 0x02]), 'lengths of more than one byte')
  t.equal(await check('x'.repeat(127)), '')
  t.same(asked[1]?.subarray(0, 7), Buffer.from([0, 0, 0, 0, 129, 0x0a, 127]))
  t.equal(await check(), '')
  t.same(asked[2], Buffer.alloc(5), 'without a service the message is empty')
  for (const [frame, word] of [
    [Buffer.of(0, 0, 0, 0, 0), 'UNKNOWN'],
    [Buffer.of(0, 0, 0, 0, 2, 8, 0), 'UNKNOWN'],
    [Buffer.of(0, 0, 0, 0, 2, 8, 3), 'SERVICE_UNKNOWN'],
    [Buffer.of(0, 0, 0, 0, 2, 8, 9), 'UNKNOWN'],
    [Buffer.of(0, 0, 0, 0, 2, 16, 1), 'UNKNOWN'],
  ] as const) {
    answer = frame
    t.equal(await check(), `service unhealthy (responded with "${word}")`)
  }
  status = '12'
  t.match(await check(), /does not implement the grpc health protocol/)
  status = ''
  t.equal(await check(), 'health rpc failed with status unknown')
})
