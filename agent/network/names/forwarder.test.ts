import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { mutatedBytes, randomNumbers } from '../../../daemon/testing/fuzz.ts'
import { type Asked, dnsQuestion, type RecordType, seenAnswer } from '../testing/dns-client.ts'
import { type Given, upstreamAnswer } from '../testing/upstream.ts'
import { answerCache } from './answer-cache.ts'
import { readQuery } from './dns-query.ts'
import { dnsForwarder, forwardLimits, type UpstreamSockets } from './forwarder.ts'
import { addressRecordsIn, readUpstreamAnswer, relayAnswer, writeUpstreamQuery } from './upstream-answer.ts'

type Ask = { readonly server: string; readonly over: 'udp' | 'tcp'; readonly message: Buffer }

const queryOf = (name: string, type: RecordType = 'A', asked: Asked = {}) => {
  const read = readQuery(dnsQuestion(name, type, asked))
  if (read.kind !== 'query') throw new Error(read.kind)
  return { ...read.query, isSecurityAware: asked.isSecurityAware === true }
}

/** `answer`: what a server sends; undefined: nothing, until the time is over. */
function world(answer: (ask: Ask) => Given | Buffer | undefined, servers: readonly string[] = ['192.0.2.1']) {
  const clock = fakeClock()
  const asks: Ask[] = []
  let ids = 0
  const send =
    (over: Ask['over']): UpstreamSockets['askUdp'] =>
    async (server, message, accepts, withinMs) => {
      asks.push({ server, over, message })
      const given = answer({ server, over, message })
      const bytes = Buffer.isBuffer(given) ? given : given && upstreamAnswer(message, given)
      const accepted = bytes && accepts(bytes)
      if (accepted !== undefined) return accepted
      await clock.sleep(withinMs)
      throw new Error('No answer')
    }
  const forwarder = dnsForwarder({
    sockets: { askUdp: send('udp'), askTcp: send('tcp') },
    servers: async () => servers,
    cache: answerCache(),
    randomId: () => ++ids,
    clock,
  })
  return { ...forwarder, clock, asks, seen: () => asks.map(({ server, over }) => `${server} ${over}`) }
}

const addressesIn = (found: Awaited<ReturnType<ReturnType<typeof world>['forward']>>) =>
  found && addressRecordsIn(found.answer).map((record) => ('data' in record ? record.data.join('.') : record.type))

test('a name of others is asked once, and kept as long as its answer allows', async (t) => {
  const { forward, asks, clock } = world(() => ({ addresses: ['192.0.2.7'], ttl: 10 }))
  const both = await Promise.all([forward(queryOf('example.com'), 'a'), forward(queryOf('Example.COM'), 'b')])
  t.same(both.map(addressesIn), [['192.0.2.7'], ['192.0.2.7']])
  t.equal(asks.length, 1)
  await clock.advance(9_000)
  t.match(await forward(queryOf('example.com'), 'a'), { ageSeconds: 9 })
  t.equal(asks.length, 1)
  await clock.advance(2_000)
  await forward(queryOf('example.com'), 'a')
  await forward(queryOf('example.com', 'AAAA'), 'a')
  t.equal(asks.length, 3)
})

test('a client gets the answer with its own id, letters and options, and with what is left of the times', async (t) => {
  const { forward } = world(() => ({ addresses: ['192.0.2.7', '192.0.2.8'], ttl: 60, hasOptions: true }))
  const query = queryOf('ExAmple.com', 'A', { id: 77 })
  const found = await forward(query, 'a')
  if (found === undefined) return t.fail('no answer')
  const seen = seenAnswer(relayAnswer(query, found.answer, 20, 512))
  t.match(seen, { id: 77, code: 0, question: 'ExAmple.com A', isAuthoritative: false, isRecursionAvailable: true })
  t.same(
    seen.answers.map(({ data, ttl }) => `${data} ${ttl}`),
    ['192.0.2.7 40', '192.0.2.8 40'],
  )
  t.same(seen.additional, [], 'the client does not use EDNS')
  const other = queryOf('example.com', 'A', { id: 78, udpBytes: 4096 })
  t.match(seenAnswer(relayAnswer(other, found.answer, 0, 512)), { id: 78, additional: [{ type: 'OPT' }] })
  const short = seenAnswer(relayAnswer(query, found.answer, 0, 40))
  t.match(short, { isTruncated: true, answers: [], question: 'ExAmple.com A' })
})

test('that a name does not exist is kept for as long as its SOA allows, a minute at the most', async (t) => {
  const lifetimeOf = (given: Given) => {
    const query = queryOf('x.example')
    return readUpstreamAnswer(upstreamAnswer(writeUpstreamQuery(query, 5, true), given), query, 5)?.ttl
  }
  t.equal(lifetimeOf({ code: 3, soa: { ttl: 3_600, limit: 30 } }), 30)
  t.equal(lifetimeOf({ code: 3, soa: { ttl: 20, limit: 3_600 } }), 20)
  t.equal(lifetimeOf({ soa: { ttl: 3_600, limit: 3_600 } }), 60)
  t.equal(lifetimeOf({ code: 2 }), 1)
  t.equal(lifetimeOf({ addresses: ['192.0.2.1'], ttl: 0 }), 0)
  t.equal(lifetimeOf({ addresses: ['192.0.2.1'], ttl: 2 ** 31 }), 0, 'a negative time counts as zero')
  t.equal(lifetimeOf({ addresses: ['192.0.2.1'], ttl: 2 ** 31 - 1 }), 86_400)
})

test('an answer with another id, name, type or form is ignored', async (t) => {
  const query = queryOf('example.com')
  const question = writeUpstreamQuery(query, 0x1234, true)
  const good = upstreamAnswer(question, { addresses: ['192.0.2.7'] })
  t.ok(readUpstreamAnswer(good, query, 0x1234))
  t.notOk(readUpstreamAnswer(good, query, 0x1235))
  t.notOk(readUpstreamAnswer(question, query, 0x1234), 'a question')
  const other = (name: string, type: RecordType) =>
    upstreamAnswer(writeUpstreamQuery(queryOf(name, type), 0x1234, true), { addresses: ['192.0.2.7'] })
  t.notOk(readUpstreamAnswer(other('example.org', 'A'), query, 0x1234))
  t.notOk(readUpstreamAnswer(other('example.com', 'AAAA'), query, 0x1234))
  t.ok(readUpstreamAnswer(other('EXAMPLE.com', 'A'), query, 0x1234))
  t.notOk(readUpstreamAnswer(good.subarray(0, -1), query, 0x1234))
  const random = randomNumbers()
  for (let round = 0; round < 20_000; round++) {
    const bytes = mutatedBytes(good, random)
    const read = readUpstreamAnswer(bytes, query, 0x1234)
    if (read === undefined) continue
    addressRecordsIn(read)
    if (relayAnswer(query, read, 5, 512).length > 512) t.fail(bytes.toString('hex'))
  }
})

test('where a server is silent the next one is asked, and later the one that answered', async (t) => {
  const servers = ['192.0.2.1', '192.0.2.2']
  const { forward, clock, seen } = world(
    ({ server }) => (server === '192.0.2.1' ? undefined : { addresses: ['192.0.2.7'] }),
    servers,
  )
  const asked = forward(queryOf('example.com'), 'a')
  await clock.advance(2_000)
  t.same(addressesIn(await asked), ['192.0.2.7'])
  await forward(queryOf('example.org'), 'a')
  t.same(seen(), ['192.0.2.1 udp', '192.0.2.2 udp', '192.0.2.2 udp'])
})

test('a server that refuses or fails is skipped while another one answers', async (t) => {
  const codes = new Map([
    ['192.0.2.1', 5],
    ['192.0.2.2', 2],
  ])
  const refusing = world(({ server }) => ({ code: codes.get(server) ?? 3 }), ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
  t.match(await refusing.forward(queryOf('example.com'), 'a'), { answer: { code: 3 } })
  const both = world(({ server }) => ({ code: codes.get(server) ?? 3 }), ['192.0.2.1', '192.0.2.2'])
  t.match(await both.forward(queryOf('example.com'), 'a'), { answer: { code: 5 } })
  const none = world(() => undefined, [])
  t.equal(await none.forward(queryOf('example.com'), 'a'), undefined)
})

test('the only server is asked twice, as a datagram can get lost', async (t) => {
  let lost = 1
  const { forward, clock, seen } = world(() => (lost-- > 0 ? undefined : { addresses: ['192.0.2.7'] }))
  const asked = forward(queryOf('example.com'), 'a')
  await clock.advance(2_000)
  t.same(addressesIn(await asked), ['192.0.2.7'])
  t.equal(seen().length, 2)
})

test('an answer that was cut off is asked for over TCP, and a server without EDNS without it', async (t) => {
  const cut = world(({ over }) => ({ isTruncated: over === 'udp', addresses: over === 'udp' ? [] : ['192.0.2.7'] }))
  t.same(addressesIn(await cut.forward(queryOf('example.com'), 'a')), ['192.0.2.7'])
  t.same(cut.seen(), ['192.0.2.1 udp', '192.0.2.1 tcp'])
  const old = world(({ message }) => (message.readUInt16BE(10) > 0 ? { code: 1 } : { addresses: ['192.0.2.7'] }))
  t.same(addressesIn(await old.forward(queryOf('example.com'), 'a')), ['192.0.2.7'])
  const onlyUdp = world(({ over }) => (over === 'udp' ? { isTruncated: true } : undefined))
  const asked = onlyUdp.forward(queryOf('example.com'), 'a')
  await onlyUdp.clock.advance(2_000)
  t.match(await asked, { answer: { isTruncated: true } })
})

test('one client cannot use up what the others need', async (t) => {
  const { forward, asks, clock } = world(({ message }) =>
    message.includes('good') ? { addresses: ['192.0.2.7'] } : undefined,
  )
  const hostile = Array.from({ length: 500 }, (_, index) => forward(queryOf(`x${index}.example`), '10.244.1.66'))
  await clock.settle()
  t.equal(asks.length, forwardLimits.ofSource)
  t.equal(await hostile.at(-1), undefined, 'refused at once')
  t.same(addressesIn(await forward(queryOf('good.example'), '10.244.1.7')), ['192.0.2.7'])
  for (let pod = 0; pod < 20; pod++) {
    for (let index = 0; index < 64; index++) void forward(queryOf(`y${index}.p${pod}.example`), `10.244.2.${pod}`)
  }
  await clock.settle()
  t.equal(asks.length, forwardLimits.open + 1, 'all together have a limit, too')
  await clock.advance(10_000)
  t.same(addressesIn(await forward(queryOf('good2.example'), '10.244.1.66')), ['192.0.2.7'])
})

test('the cache has a bound, and drops what was used longest ago', async (t) => {
  const cache = answerCache({ entries: 2, bytes: 1_000, largest: 100 })
  const answer = { code: 0, isTruncated: false, bytes: Buffer.alloc(50), ttlOffsets: [], ttl: 60 }
  for (const key of ['a', 'b']) cache.set(key, answer, 0)
  cache.get('a', 1_000)
  cache.set('c', answer, 2_000)
  t.same(
    ['a', 'b', 'c'].map((key) => cache.get(key, 2_000) !== undefined),
    [true, false, true],
  )
  cache.set('large', { ...answer, bytes: Buffer.alloc(101) }, 2_000)
  cache.set('cut', { ...answer, isTruncated: true }, 2_000)
  t.same([cache.get('large', 2_000), cache.get('cut', 2_000)], [undefined, undefined])
  const few = answerCache({ entries: 100, bytes: 120, largest: 100 })
  for (const key of ['a', 'b', 'c']) few.set(key, answer, 0)
  t.same(
    ['a', 'b', 'c'].map((key) => few.get(key, 0) !== undefined),
    [false, true, true],
  )
  t.equal(few.get('c', 60_000), undefined)
})
