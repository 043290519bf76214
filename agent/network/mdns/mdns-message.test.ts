import { test } from 'tap'
import { dnsQuestion, seenAnswer } from '../testing/dns-client.ts'
import { readMdnsMessage, writeLegacyResponse, writeProbe, writeResponse } from './mdns-message.ts'

const pi = { name: 'pi-1.local', address: '192.168.1.5' }

test('a probe asks for any record of a name, and proposes its own', async (t) => {
  const read = readMdnsMessage(writeProbe([pi]))
  t.match(read, {
    isResponse: false,
    questions: [{ name: 'pi-1.local', type: 255, wantsUnicast: false }],
    answers: [],
    authorities: [{ name: 'pi-1.local', type: 1, ttl: 120 }],
  })
  t.same([...(read?.authorities[0]?.data ?? [])], [192, 168, 1, 5])
})

test('a response replaces what caches have, and states that there is no other type', async (t) => {
  const bytes = writeResponse([pi])
  t.match(seenAnswer(bytes), {
    id: 0,
    isAuthoritative: true,
    question: '',
    answers: [{ name: 'pi-1.local', type: 'A', ttl: 120, data: '192.168.1.5' }],
    additional: [{ name: 'pi-1.local', type: '47', ttl: 120, data: '0470692d31056c6f63616c00000140' }],
  })
  t.equal(bytes.readUInt16BE(12 + 12 + 2), 0x8001, 'the bit that replaces what caches have')
  t.match(seenAnswer(writeResponse([], [pi])), {
    answers: [{ name: 'pi-1.local', type: '47' }],
    additional: [{ name: 'pi-1.local', type: 'A', data: '192.168.1.5' }],
  })
  t.match(seenAnswer(writeResponse([pi], [pi])), { answers: [{ type: 'A' }, { type: '47' }], additional: [] })
})

test('a record that is withdrawn has no time to live, and nothing beside it', async (t) => {
  t.match(seenAnswer(writeResponse([pi], [], 0)), { answers: [{ ttl: 0 }], additional: [] })
})

test('a resolver of plain DNS gets its question back, and the address for ten seconds', async (t) => {
  const question = { name: 'pi-1.local', type: 1, wantsUnicast: false }
  t.match(seenAnswer(writeLegacyResponse(4_711, question, [pi])), {
    id: 4_711,
    question: 'pi-1.local A',
    answers: [{ name: 'pi-1.local', ttl: 10, data: '192.168.1.5' }],
    additional: [],
  })
})

test('names are read in lower case, also behind pointers', async (t) => {
  const answer = [0xc0, 12, 0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, 192, 168, 1, 9]
  const bytes = Buffer.concat([dnsQuestion('PI-1.local', 'A'), Buffer.from(answer)])
  bytes.writeUInt16BE(0x8400, 2)
  bytes.writeUInt16BE(1, 6)
  t.match(readMdnsMessage(bytes), {
    isResponse: true,
    questions: [{ name: 'pi-1.local' }],
    answers: [{ name: 'pi-1.local' }],
  })
})

test('what is no message of multicast DNS is ignored', async (t) => {
  const good = dnsQuestion('pi-1.local', 'A')
  const changed = (change: (bytes: Buffer) => void) => {
    const bytes = Buffer.from(good)
    change(bytes)
    return readMdnsMessage(bytes)
  }
  t.ok(readMdnsMessage(good))
  t.equal(readMdnsMessage(good.subarray(0, 11)), undefined, 'no head')
  t.equal(readMdnsMessage(good.subarray(0, good.length - 1)), undefined, 'cut off')
  t.equal(readMdnsMessage(Buffer.concat([good, Buffer.alloc(9_000)])), undefined, 'larger than any')
  t.equal(
    changed((bytes) => bytes.writeUInt16BE(0x0800, 2)),
    undefined,
    'another operation',
  )
  t.equal(
    changed((bytes) => bytes.writeUInt16BE(0x8003, 2)),
    undefined,
    'a failure',
  )
  t.equal(
    changed((bytes) => bytes.writeUInt16BE(300, 4)),
    undefined,
    'more entries than fit',
  )
  t.equal(
    changed((bytes) => bytes.writeUInt16BE(1, 6)),
    undefined,
    'a record that is not there',
  )
  t.same(changed((bytes) => bytes.writeUInt16BE(3, bytes.length - 2))?.questions, [], 'a question of another class')
})

test('bytes drawn at random are read or ignored', async (t) => {
  const good = [writeProbe([pi]), writeResponse([pi, { name: 'web.shop.local', address: '192.168.1.9' }])]
  let seed = 7
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed % below
  }
  for (let round = 0; round < 5_000; round++) {
    const bytes = Buffer.from(good[round % 2] ?? '')
    for (let change = 0; change < 3; change++) bytes[next(bytes.length)] = next(256)
    t.doesNotThrow(() => readMdnsMessage(bytes.subarray(0, next(bytes.length + 1))))
  }
})
