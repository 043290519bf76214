import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { issueServer } from '../../../certs/issue.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { webhookCaller } from './webhook-call.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A webhook on this machine, and a call of it. */
async function aWebhook(t: Test, handler: Handler, names: readonly string[] = ['127.0.0.1']) {
  const nowMs = Date.now()
  const authority = await openAuthority(testFolder(t), nowMs)
  const { certificate: cert, key } = issueServer(authority, { names: [...names], nowMs })
  const server = createServer({ cert, key }, handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const caller = webhookCaller()
  t.teardown(() => {
    caller.close()
    server.closeAllConnections()
    server.close()
  })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/review?own=1`
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const call = ({ seconds = 30, body = '{}', signal = new AbortController().signal, bundle = caBundle } = {}) =>
    caller.call({ client: { url, caBundle: bundle }, timeoutSeconds: seconds, body, signal })
  return { url, caller, call, bundle: caBundle }
}

test('a call posts the review to the URL, with the timeout in its query, and gives the body of the answer', async (t) => {
  const seen: unknown[] = []
  const { call } = await aWebhook(t, ({ method, url, headers }, response) => {
    seen.push([method, url, headers['content-type'], headers.accept, headers['content-length']])
    response.end('{"kind":"AdmissionReview"}')
  })
  t.same(await call({ body: '{"a":"ü"}', seconds: 20 }), { kind: 'AdmissionReview' })
  t.same(seen, [['POST', '/review?own=1&timeout=20s', 'application/json', 'application/json', '10']])
})

test('an answer that is not 200 with JSON is an error in the words of Kubernetes', async (t) => {
  let answer: { code: number; text: string } = { code: 200, text: '' }
  const { call } = await aWebhook(t, (_, response) => response.writeHead(answer.code).end(answer.text))
  const errorOf = async (code: number, text: string) => {
    answer = { code, text }
    return call().then(
      () => 'no error',
      ({ message }: Error) => message,
    )
  }
  t.match(await errorOf(200, '{'), /JSON|json/)
  t.equal(await errorOf(404, 'x'), 'the server could not find the requested resource')
  const prevented = 'has prevented the request from succeeding'
  t.equal(await errorOf(500, 'broken'), `an error on the server ("broken") ${prevented}`)
  t.equal(await errorOf(503, ''), `an error on the server ("") ${prevented}`)
  t.equal(await errorOf(201, '{}'), 'the server responded with the status code 201: "{}"')
  t.equal(await errorOf(302, 'moved'), 'the server responded with the status code 302: "moved"', 'not followed')
  t.ok((await errorOf(500, 'x'.repeat(100_000))).length < 400, 'a long text is cut')
})

test('an answer may have at most 3 MiB', async (t) => {
  let length = 0
  const { call } = await aWebhook(t, (_, response) => response.end(`"${'x'.repeat(length - 2)}"`))
  length = 3 * 1024 * 1024
  t.equal(String(await call()).length, length - 2)
  length += 1
  await t.rejects(call(), { message: 'the answer is longer than 3145728 bytes' })
})

test('an answer in small pieces, or after many informational ones, is given up', async (t) => {
  let answer = ''
  const { call } = await aWebhook(t, (_, { socket }) => void socket?.end(answer))
  const chunked = (count: number, size: number) => {
    const chunk = `${size.toString(16)}\r\n${' '.repeat(size)}\r\n`
    const head = 'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'
    return `${head}${chunk.repeat(count)}2\r\n{}\r\n0\r\n\r\n`
  }
  answer = chunked(10_000, 200)
  t.same(await call(), {})
  answer = chunked(10_000, 1)
  await t.rejects(call(), { message: 'the answer comes in too many small pieces' })
  const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  answer = `${hint.repeat(5)}${chunked(1, 1)}`
  t.same(await call(), {})
  answer = `${hint.repeat(6)}${chunked(1, 1)}`
  await t.rejects(call(), /^Post ".*": the server sends too many 1xx informational responses$/)
})

test('a webhook that does not answer is given up after its timeout, or with the request', async (t) => {
  const { call, url } = await aWebhook(t, () => undefined)
  await t.rejects(call({ seconds: 1 }), { message: `Post "${url}&timeout=1s": context deadline exceeded` })
  const gone = new AbortController()
  const waiting = call({ signal: gone.signal })
  gone.abort()
  await t.rejects(waiting)
})

test('the server must prove its name with the caBundle of the webhook', async (t) => {
  const { call } = await aWebhook(t, (_, response) => response.end('{}'))
  await t.rejects(call({ bundle: '' }), /^Post ".*": .*certificate/)
  const other = await aWebhook(t, (_, response) => response.end('{}'), ['other.example'])
  await t.rejects(other.call(), /^Post ".*": .*(altnames|cert's)/)
})

test('a server that is not there is named, and a way that there is not', async (t) => {
  const caller = webhookCaller()
  t.teardown(caller.close)
  const call = (client: Parameters<typeof caller.call>[0]['client']) =>
    caller.call({ client, timeoutSeconds: 30, body: '{}', signal: new AbortController().signal })
  const url = 'https://127.0.0.1:1/x'
  await t.rejects(call({ url }), {
    message: `Post "${url}?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused`,
  })
  const place = 'https://s.n.svc:443/?timeout=30s'
  await t.rejects(call({ service: { namespace: 'n', name: 's' } }), {
    message: `Post "${place}": there is no way to Services`,
  })
  await t.rejects(call({}), { message: 'clientConfig has neither a url nor a service' })
})

test('a webhook behind a Service is called on a connection of its own, which ends with the call', async (t) => {
  const seen: unknown[] = []
  const { url, bundle } = await aWebhook(
    t,
    (request, response) => {
      seen.push([request.method, request.url, request.headers.host])
      response.end('{"kind":"AdmissionReview"}')
    },
    ['hook.tools.svc'],
  )
  const sockets: Socket[] = []
  const asked: unknown[] = []
  const caller = webhookCaller({
    async connect(service, port) {
      asked.push([service, port])
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      sockets.push(socket)
      return socket
    },
  })
  t.teardown(caller.close)
  const call = (service: { readonly name: string; readonly path?: string; readonly port?: number }) => {
    const client = { service: { namespace: 'tools', ...service }, caBundle: bundle }
    return caller.call({ client, timeoutSeconds: 30, body: '{}', signal: new AbortController().signal })
  }
  t.same(await call({ name: 'hook', path: '/review' }), { kind: 'AdmissionReview' })
  t.same(await call({ name: 'hook', port: 8443 }), { kind: 'AdmissionReview' })
  t.same(asked, [
    [{ namespace: 'tools', name: 'hook' }, 443],
    [{ namespace: 'tools', name: 'hook' }, 8443],
  ])
  t.same(seen, [
    ['POST', '/review?timeout=30s', 'hook.tools.svc:443'],
    ['POST', '/?timeout=30s', 'hook.tools.svc:8443'],
  ])
  await t.rejects(call({ name: 'other' }), /^Post "https:\/\/other.tools.svc:443\/\?timeout=30s": .*altnames/)
  t.ok(sockets.every(({ destroyed }) => destroyed))
})
