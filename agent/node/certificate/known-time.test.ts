import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { type Test, test } from 'tap'
import { type Authority, openAuthority } from '../../../certs/authority.ts'
import { type Issued, issueNode, issueServer } from '../../../certs/issue.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { connectToServer, type KnownTime } from '../../../daemon/server-check.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { timeFile } from '../../adapters/disk/time-file.ts'
import { until } from '../../testing/until.ts'
import { earliestAt, isWorthSaving, laterOf, openKnownTime } from './known-time.ts'

const day = 24 * 3600_000
const nowMs = Date.now()

function believing(earliestMs: number, isClockRight = false): KnownTime & { readonly learnt: number[] } {
  const learnt: number[] = []
  return { earliestMs: () => earliestMs, isClockRight: () => isClockRight, learn: (ms) => learnt.push(ms), learnt }
}

async function server(t: Test, { certificate, key }: Issued, authority: Authority): Promise<number> {
  const made = createServer({ key, cert: certificate + authority.certificate }, (socket) => {
    socket.on('error', () => undefined)
    socket.end('hello')
  })
  made.on('tlsClientError', () => undefined)
  made.listen(0, '127.0.0.1')
  await once(made, 'listening')
  t.teardown(() => made.close())
  const address = made.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

test('with a wrong clock a node verifies its controller, and rejects other servers', async (t) => {
  const folder = testFolder(t)
  const authority = await openAuthority(join(folder, 'ours'), nowMs - 100 * day)
  const other = await openAuthority(join(folder, 'other'), nowMs - 100 * day)
  // To a clock that is right these dates look as those of a good certificate do to a wrong one.
  const names = ['127.0.0.1']
  const ended = issueServer(authority, { names, nowMs: nowMs - 20 * day, lifeMs: 10 * day })
  const early = issueServer(authority, { names, nowMs: nowMs + 50 * day })
  const connect = async (issued: Issued, knownTime?: KnownTime, ca = authority) => {
    const port = await server(t, issued, ca)
    const socket = await connectToServer({ host: '127.0.0.1', port, ca: authority.certificate, knownTime })
    socket.destroy()
    return 'connected'
  }
  await t.rejects(connect(ended), { code: 'CERT_HAS_EXPIRED' }, 'without a known time the clock counts')
  await t.rejects(connect(early), { code: 'CERT_NOT_YET_VALID' })
  await t.rejects(connect(ended, believing(0, true)), { code: 'CERT_HAS_EXPIRED' }, 'a synchronized clock counts')

  t.equal(await connect(ended, believing(nowMs - 15 * day)), 'connected', 'ten years ahead')
  await t.rejects(connect(ended, believing(nowMs - 9 * day)), { code: 'CERT_HAS_EXPIRED' }, 'it ended before')
  const past = believing(nowMs - 90 * day)
  t.equal(await connect(early, past), 'connected', 'in the past')
  t.match(past.learnt, [Number], 'and the known time is later now')

  const known = believing(nowMs - 90 * day)
  await t.rejects(connect(issueServer(other, { names, nowMs: nowMs + 50 * day }), known, other), {
    code: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  })
  const elsewhere = issueServer(authority, { names: ['10.9.8.7'], nowMs: nowMs + 50 * day })
  await t.rejects(connect(elsewhere, known), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  await t.rejects(connect(issueNode(authority, { nodeName: 'pi-2', nowMs: nowMs + 50 * day }), known), {
    code: 'INVALID_PURPOSE',
  })
  const stranger = issueServer(other, { names, nowMs })
  await t.rejects(connect(stranger, known, other), 'nor with dates that are good')
  t.equal(known.learnt.length, 0, 'nothing is learnt from an unverified server')
  await t.rejects(connectToServer({ host: '127.0.0.1', port: 1, ca: authority.certificate, knownTime: known }), {
    code: 'ECONNREFUSED',
  })
  await t.rejects(
    connectToServer({ host: '127.0.0.1', port: 1, ca: authority.certificate }, AbortSignal.abort(new Error('enough'))),
    /enough/,
  )
})

test('it is never earlier than the certain lower bounds', async (t) => {
  const folder = testFolder(t)
  const path = join(folder, 'last-known-time')
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const { certificate } = issueNode(authority, { nodeName: 'pi-1', nowMs })
  const written = () => Date.parse(readFileSync(path, 'utf8').split(' ')[0] ?? '')
  const clock = fakeClock(0)
  let isRight = false
  const log = quietLog(t, 'The clock is behind the last known time; pods run, certificates are judged by that time')
  const open = (pem = certificate) =>
    openKnownTime({ file: timeFile(path), certificate: pem, isClockRight: () => isRight, clock, log })
  const known = await open()
  t.ok(Math.abs(known.earliestMs() - nowMs) < 3600_000, 'its own certificate was made in the past')
  t.ok(known.behindMs() > 365 * day)
  const before = known.earliestMs()
  await clock.advance(5_000)
  t.equal(known.earliestMs(), before + 5_000)
  known.learn(nowMs - day)
  t.equal(known.earliestMs(), before + 5_000)
  known.learn(nowMs + 40 * day)
  t.equal(known.earliestMs(), nowMs + 40 * day)

  const stopping = new AbortController()
  const running = known.run(stopping.signal)
  await clock.advance(3600_000)
  await until('it is saved', () => existsSync(path))
  const kept = written()
  t.ok(Math.abs(kept - nowMs - 40 * day) < 2 * 3600_000)
  for (let hours = 0; hours < 20 * 24; hours += 12) await clock.advance(12 * 3600_000)
  t.equal(written(), kept, 'a card is not written to every day')
  stopping.abort()
  await running
  t.ok(written() > kept + 19 * day, 'written when it stops')
  t.ok((await open('damaged')).earliestMs() > kept + 19 * day, 'and read by the next agent')
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^2/, '6'))
  t.equal((await open('damaged')).earliestMs(), 0, 'a flipped bit makes it no later')

  writeFileSync(path, rfc3339(nowMs + 4000 * day))
  const misled = await open('damaged')
  t.ok(misled.earliestMs() > nowMs + 3999 * day)
  isRight = true
  const end = new AbortController()
  const run = misled.run(end.signal)
  end.abort()
  await run
  t.equal(misled.earliestMs(), clock.wallMs(), 'a synchronized clock corrects a wrong time')
  writeFileSync(path, '\0\0\0')
  t.equal((await open('damaged')).earliestMs(), 0)
})

test('a received time moves the lower bound forward only', async (t) => {
  const known = { ms: 1_000_000, atMs: 500 }
  t.equal(earliestAt(known, 1_500), 1_001_000)
  t.equal(laterOf(known, 1_001_000, 1_500), known)
  t.same(laterOf(known, 1_001_001, 1_500), { ms: 1_001_001, atMs: 1_500 })
})

test('a saved time that is wrong by less is not written again', async (t) => {
  t.equal(isWorthSaving(5_999, 5_000, 1_000), false)
  t.equal(isWorthSaving(6_000, 5_000, 1_000), true)
  t.equal(isWorthSaving(4_000, 5_000, 1_000), true, 'also backwards')
})
