import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { type ApiUnreachable, apiClient, statusMessage } from './api-client.ts'

const folder = mkdtempSync(join(tmpdir(), 'bramble-'))
const [keyPath, certPath] = [join(folder, 'key'), join(folder, 'crt')]
const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:pi.example,IP:127.0.0.1']
const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', keyPath, '-out', certPath, ...subject], {
  stdio: 'ignore',
})
const [key, ca] = [readFileSync(keyPath, 'utf8'), readFileSync(certPath, 'utf8')]
rmSync(folder, { recursive: true })

async function serve(
  t: Test,
  answer: (request: IncomingMessage, response: ServerResponse, body: string) => void,
): Promise<string> {
  const server = createServer({ key, cert: ca, requestCert: true, rejectUnauthorized: false }, (request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => answer(request, response, body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return `https://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
}

test('JSON goes out and comes back, with the token, the time and the status', async (t) => {
  const url = await serve(t, ({ method, url: path, headers }, response, body) => {
    response.statusCode = method === 'POST' ? 201 : 200
    response.end(JSON.stringify({ method, path, type: headers['content-type'], as: headers.authorization, body }))
  })
  const client = apiClient({ url, ca, token: 'abcdef.0123456789abcdef' })
  const posted = await client.post('/api/v1/nodes', { a: 'ä' })
  t.match(posted, {
    status: 201,
    body: { method: 'POST', path: '/api/v1/nodes', as: 'Bearer abcdef.0123456789abcdef', body: '{"a":"ä"}' },
  })
  t.ok(Math.abs(Date.parse(posted.dateHeader ?? '') - Date.now()) < 60_000)
  t.match(await client.get('/x?y=z'), { status: 200, body: { method: 'GET', path: '/x?y=z', type: undefined } })
  t.match(await client.patch('/x', {}), { body: { method: 'PATCH', type: 'application/merge-patch+json' } })
  t.match(await client.delete('/x'), { body: { method: 'DELETE' } })
  const options = { gracePeriodSeconds: 0 }
  t.match(await client.delete('/x', undefined, options), { body: { body: JSON.stringify(options) } })
})

test('a request over the limits of the server is sent again when the server asks for it', async (t) => {
  let served = 0
  const url = await serve(t, ({ url: path }, response, body) => {
    served += 1
    if (path === '/busy' && served < 4) response.writeHead(429, { 'retry-after': '2' })
    if (path === '/always') response.writeHead(429, { 'retry-after': '1' })
    if (path === '/budget') response.statusCode = 429
    response.end(JSON.stringify({ body }))
  })
  const waitsMs: number[] = []
  const sleep = async (ms: number) => void waitsMs.push(ms)
  const client = apiClient({ url, ca, sleep })
  t.match(await client.post('/busy', 'x'), { status: 200, body: { body: '"x"' } })
  t.equal(served, 4)
  t.ok(waitsMs.every((ms) => ms >= 2000 && ms <= 30_000))

  served = 0
  t.match(await client.get('/always'), { status: 429 })
  t.equal(served, 11)
  served = 0
  t.match(await client.get('/budget'), { status: 429 }, 'no time to wait: the caller decides')
  t.equal(served, 1)

  const stop = new AbortController()
  const stopping = apiClient({ url, ca, sleep: async () => stop.abort(new Error('enough')) })
  await t.rejects(stopping.get('/always', stop.signal), { message: 'enough' })
})

test('a client shows its certificate', async (t) => {
  const url = await serve(t, ({ socket }, response) => {
    const peer =
      'getPeerCertificate' in socket ? (socket as import('node:tls').TLSSocket).getPeerCertificate() : undefined
    response.end(JSON.stringify(peer?.subject?.CN ?? 'anonymous'))
  })
  t.equal((await apiClient({ url, ca, certificate: ca, key }).get('/')).body, 'localhost')
  t.equal((await apiClient({ url, ca }).get('/')).body, 'anonymous')
})

test('an answer that is not JSON is given as it is', async (t) => {
  const url = await serve(t, (_request, response) => response.end('<html>'))
  t.equal((await apiClient({ url, ca }).get('/')).body, '<html>')
})

test('a missing answer is reported with what was tried, and why', async (t) => {
  const silent = await serve(t, () => undefined)
  await t.rejects(apiClient({ url: silent, ca, deadlineMs: 50 }).get('/healthz'), {
    name: 'ApiUnreachable',
    message: `Cannot GET ${silent}/healthz`,
    code: 'ETIMEDOUT',
    cause: { message: 'no answer within 0.05 s' },
  })
  const asked = new AbortController()
  const waiting = apiClient({ url: silent, ca }).get('/', asked.signal)
  asked.abort(new Error('asked to stop'))
  await t.rejects(waiting, { message: 'asked to stop' })
  await t.rejects(apiClient({ url: 'https://127.0.0.1:1', ca }).get('/'), { code: 'ECONNREFUSED' } as ApiUnreachable)
  const other = await serve(t, (_request, response) => response.end('{}'))
  const elsewhere = other.replace('127.0.0.1', 'localhost')
  await t.rejects(apiClient({ url: elsewhere, ca }).get('/'), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  } as ApiUnreachable)
})

test('the message of a Status is found, and of nothing else', async (t) => {
  t.equal(statusMessage({ kind: 'Status', message: 'no' }), 'no')
  t.equal(statusMessage({ kind: 'Node', message: 'no' }), undefined)
  t.equal(statusMessage('no'), undefined)
  t.equal(statusMessage(null), undefined)
})
