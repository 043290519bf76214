import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { issueServer } from '../../../certs/issue.ts'
import type { KnownTime } from '../../../daemon/server-check.ts'
import { releaseSource } from './release-source.ts'

const digest = 'a'.repeat(64)
const knownTime: KnownTime = { isClockRight: () => true, earliestMs: () => 0, learn: () => undefined }

/** A controller that answers so, and what it was asked. */
async function controller(t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const authority = await openAuthority(t.testdir(), Date.now())
  const { certificate, key } = issueServer(authority, { names: ['localhost', '127.0.0.1'], nowMs: Date.now() })
  const asked: string[] = []
  const server = createServer(
    { key, cert: certificate, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers.range}`)
      answer(request, response)
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const servers = { urls: [url], ca: authority.certificate, certificate, key, knownTime }
  return { url, asked, servers }
}

test('a range of a file is read from the controller', async (t) => {
  const { asked, servers } = await controller(t, (_, response) => {
    response.writeHead(206, { 'content-range': 'bytes 3-5/10' })
    response.end('345')
  })
  const part = await releaseSource(servers, digest).read('agent.tar', 3, 3)
  t.same([part?.size, Buffer.from(part?.bytes ?? []).toString()], [10, '345'])
  t.same(asked, [`GET /bramble/v1/releases/${digest}/agent.tar bytes=3-5`])
})

test('a file that is not there is none, and a range behind its end is empty', async (t) => {
  const missing = await controller(t, (_, response) => response.writeHead(404).end())
  t.equal(await releaseSource(missing.servers, digest).read('agent.tar', 0, 5), undefined)
  const behind = await controller(t, (_, response) => response.writeHead(416, { 'content-range': 'bytes */10' }).end())
  t.match(await releaseSource(behind.servers, digest).read('agent.tar', 10, 5), { size: 10, bytes: { length: 0 } })
})

test('an answer that is longer than asked for, of another range or another status is refused', async (t) => {
  const answers: readonly ((response: ServerResponse) => void)[] = [
    (response) => response.writeHead(206, { 'content-range': 'bytes 0-4/10' }).end('0123456789'),
    (response) => response.writeHead(206, { 'content-range': 'bytes 1-5/10' }).end('12345'),
    (response) => response.writeHead(206).end('01234'),
    (response) => response.writeHead(200).end('01234'),
    (response) => response.writeHead(503).end(),
  ]
  for (const answer of answers) {
    const { servers } = await controller(t, (_, response) => answer(response))
    await t.rejects(releaseSource(servers, digest).read('agent.tar', 0, 5), { message: /^Cannot read agent\.tar/ })
  }
})

test('where a controller does not answer the next one is asked', async (t) => {
  const { url, servers } = await controller(t, (_, response) => {
    response.writeHead(206, { 'content-range': 'bytes 0-0/1' }).end('0')
  })
  const urls = ['https://127.0.0.1:1', url]
  t.match(await releaseSource({ ...servers, urls }, digest).read('agent.tar', 0, 1), { size: 1 })
})
