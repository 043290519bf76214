import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { type Test, test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { openAuthority } from '../../../certs/authority.ts'
import { issueController, issueServer } from '../../../certs/issue.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { forwardRequest } from './forward-request.ts'

/** A leader that answers when it is asked to, and what a standby needs to pass requests on to it. */
async function leaderWith(t: Test, answer: (incoming: IncomingMessage, outgoing: ServerResponse) => void) {
  const nowMs = Date.now()
  const authority = await openAuthority(testFolder(t), nowMs)
  const ca = authority.trusted
  const { certificate: cert, key } = issueServer(authority, { names: ['127.0.0.1'], nowMs })
  const server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true }, answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const gone = new AbortController()
  t.teardown(async () => {
    gone.abort()
    server.closeAllConnections()
    server.close()
  })
  const common = {
    identity: { user: 'jane', groups: ['team'] },
    isUpgrade: false,
    leader: `https://127.0.0.1:${port}`,
    credentials: { ca, ...issueController(authority, { nowMs }) },
    clock,
    signal: gone.signal,
  }
  return (method: string, more: { readonly isLong: boolean; readonly answerMs?: number }, given: string[] = []) => {
    const body = method === 'POST' ? Readable.from(['{}']) : undefined
    const headers = ['Host', 'fleet:6443', ...(body === undefined ? [] : ['Content-Length', '2']), ...given]
    const raw = { method, path: '/api/v1/pods', query: 'a=b', headers, address: '192.0.2.7', body }
    return forwardRequest({ ...common, ...more, raw })
  }
}

test('the leader gets the identity that the standby found, whatever the client wrote', async (t) => {
  let seen: IncomingMessage | undefined
  const forward = await leaderWith(t, (incoming, outgoing) => {
    seen = incoming
    outgoing.end('fine')
  })
  const written = ['X-Bramble-Identity', 'e30', 'X-BRAMBLE-IDENTITY', 'e30']
  const answer = await forward('GET', { isLong: false }, [
    ...written,
    'X-Forwarded-For',
    '8.8.8.8',
    'Authorization',
    'x',
  ])
  t.match(answer, { kind: 'proxied', code: 200 })
  t.equal(seen?.url, '/api/v1/pods?a=b')
  const values = seen?.headersDistinct['x-bramble-identity'] ?? []
  t.same(
    values.map((value) => JSON.parse(Buffer.from(value, 'base64url').toString())),
    [{ identity: { user: 'jane', groups: ['team'] } }],
  )
  t.equal(seen?.headers['x-forwarded-for'], '192.0.2.7')
  t.equal(seen?.headers.authorization, undefined)
})

test('a leader that gives no answer is given up; a long request waits for its first byte', async (t) => {
  let received: (outgoing: ServerResponse) => void = () => {}
  const first = new Promise<ServerResponse>((resolve) => {
    received = resolve
  })
  const forward = await leaderWith(t, (_, outgoing) => received(outgoing))
  const long = forward('GET', { isLong: true, answerMs: 1 })
  const outgoing = await first
  const read = await forward('GET', { isLong: false, answerMs: 1 }).catch((error: unknown) => error)
  t.ok(isApiError(read, 'ServiceUnavailable'), String(read))
  const write = await forward('POST', { isLong: false, answerMs: 1 }).catch((error: unknown) => error)
  t.ok(isApiError(write, 'Timeout'), String(write))
  outgoing.end('late')
  t.match(await long, { kind: 'proxied', code: 200 })
})
