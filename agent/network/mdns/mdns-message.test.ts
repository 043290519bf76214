import { test } from 'tap'
import { dnsQuestion, seenAnswer } from '../testing/dns-client.ts'
import { readMdnsMessage, writeLegacyResponse, writeProbe, writeResponse, writeWithdrawal } from './mdns-message.ts'

const pi = { name: 'pi-1.local', addresses: ['192.168.1.5'] }
const dual = { name: 'pi-1.local', addresses: ['192.168.1.5', 'fd00:7::5', '2001:db8::5'] }
const ofIPv6 = { name: 'web.shop.local', addresses: ['fd00:7::240'] }
const any = { type: 255 }
/** The data of their records, in hexadecimal. */
const [unique, global, balancer] = ['fd000007', '20010db8', 'fd000007'].map(
  (text, index) => text.padEnd(28, '0') + ['0005', '0005', '0240'][index],
)
const [typeA, typeAAAA, typeTXT] = [{ type: 1 }, { type: 28 }, { type: 16 }]
/** The name, and the bits of its types. */
const nsec = (bits: string) => `0470692d31056c6f63616c00${bits}`

const messageIn = (bytes: Buffer) => readMdnsMessage(bytes).message

test('a probe asks for any record of a name, and proposes its own', async (t) => {
  const read = messageIn(writeProbe([pi]))
  t.match(read, {
    isResponse: false,
    questions: [{ name: 'pi-1.local', type: 255, wantsUnicast: false }],
    answers: [],
    authorities: [{ name: 'pi-1.local', type: 1, ttl: 120 }],
  })
  t.same([...(read?.authorities[0]?.data ?? [])], [192, 168, 1, 5])
  const both = messageIn(writeProbe([dual]))?.authorities
  t.same(
    both?.map(({ type, data }) => [type, data.length]),
    [
      [1, 4],
      [28, 16],
      [28, 16],
    ],
  )
  t.equal(Buffer.from(both?.[1]?.data ?? []).toString('hex'), unique)
})

test('a response replaces what caches have, and states that there is no other type', async (t) => {
  const bytes = writeResponse([{ ...pi, ...any }])
  t.match(seenAnswer(bytes), {
    id: 0,
    isAuthoritative: true,
    question: '',
    answers: [{ name: 'pi-1.local', type: 'A', ttl: 120, data: '192.168.1.5' }],
    additional: [{ name: 'pi-1.local', type: '47', ttl: 120, data: nsec('000140') }],
  })
  t.equal(bytes.readUInt16BE(12 + 12 + 2), 0x8001, 'the bit that replaces what caches have')
  t.match(seenAnswer(writeResponse([{ ...pi, ...typeAAAA }])), {
    answers: [{ name: 'pi-1.local', type: '47', data: nsec('000140') }],
    additional: [{ name: 'pi-1.local', type: 'A', data: '192.168.1.5' }],
  })
})

test('whatever is asked of a name, all get its addresses of both families', async (t) => {
  const seen = (...stated: Parameters<typeof writeResponse>[0]) => {
    const { answers, additional } = seenAnswer(writeResponse(stated))
    return [answers, additional].map((records) => records.map(({ type, data }) => `${type} ${data}`))
  }
  const [ipv4, ipv6, none] = ['A 192.168.1.5', [`AAAA ${unique}`, `AAAA ${global}`], `47 ${nsec('000440000008')}`]
  t.same(seen({ ...dual, ...any }), [[ipv4, ...ipv6], [none]])
  t.same(seen({ ...dual, ...typeA }), [[ipv4], [...ipv6, none]])
  t.same(seen({ ...dual, ...typeAAAA }), [ipv6, [ipv4, none]])
  t.same(seen({ ...dual, ...typeTXT }), [[none], [ipv4, ...ipv6]])
  const { answers, additional } = seenAnswer(writeResponse([{ ...ofIPv6, ...typeA }]))
  t.match([answers, additional], [[{ type: '47', data: /000400000008$/ }], [{ type: 'AAAA', data: balancer }]])
})

test('a record that is withdrawn has no time to live, and nothing beside it', async (t) => {
  const bytes = writeWithdrawal([{ ...pi, addresses: ['fd00:7::5'] }])
  t.match(seenAnswer(bytes), { answers: [{ ttl: 0, data: unique }], additional: [] })
  t.equal(seenAnswer(bytes).answers.length, 1)
  t.equal(bytes.readUInt16BE(12 + 12 + 2), 1, 'the name keeps its other addresses')
})

test('a resolver of plain DNS gets its question back, and the address for ten seconds', async (t) => {
  const question = { name: 'pi-1.local', type: 1, wantsUnicast: false }
  t.match(seenAnswer(writeLegacyResponse(4_711, question, dual)), {
    id: 4_711,
    question: 'pi-1.local A',
    answers: [{ name: 'pi-1.local', ttl: 10, data: '192.168.1.5' }],
    additional: [],
  })
  const { answers } = seenAnswer(writeLegacyResponse(1, { ...question, ...typeAAAA }, dual))
  t.same(
    answers.map(({ data, ttl }) => `${data} ${ttl}`),
    [`${unique} 10`, `${global} 10`],
  )
})

test('names are read in lower case, also behind pointers', async (t) => {
  const answer = [0xc0, 12, 0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, 192, 168, 1, 9]
  const bytes = Buffer.concat([dnsQuestion('PI-1.local', 'A'), Buffer.from(answer)])
  bytes.writeUInt16BE(0x8400, 2)
  bytes.writeUInt16BE(1, 6)
  t.match(messageIn(bytes), {
    isResponse: true,
    questions: [{ name: 'pi-1.local' }],
    answers: [{ name: 'pi-1.local' }],
  })
})

test('what is not a multicast DNS message is ignored', async (t) => {
  const good = dnsQuestion('pi-1.local', 'A')
  const changed = (change: (bytes: Buffer) => void) => {
    const bytes = Buffer.from(good)
    change(bytes)
    return messageIn(bytes)
  }
  t.ok(messageIn(good))
  t.equal(messageIn(good.subarray(0, 11)), undefined, 'no head')
  t.equal(messageIn(good.subarray(0, good.length - 1)), undefined, 'cut off')
  t.equal(messageIn(Buffer.concat([good, Buffer.alloc(9_000)])), undefined, 'larger than any')
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

test('a message of more names than programs send is not read, however short it is', async (t) => {
  const name = [...[63, 63, 63, 61].flatMap((size) => [size, ...Array(size).fill(255)]), 0]
  const asked = (count: number) =>
    Buffer.from([
      ...[0, 0, 0, 0, count >> 8, count & 255, 0, 0, 0, 0, 0, 0, ...name, 0, 1, 0, 1],
      ...Array.from({ length: count - 1 }, () => [0xc0, 12, 0, 1, 0, 1]).flat(),
    ])
  t.equal(messageIn(asked(8))?.questions.length, 8)
  t.equal(messageIn(asked(256)), undefined)
  const { nameCharacters } = readMdnsMessage(asked(256))
  t.ok(nameCharacters > 9_000 && nameCharacters < 11_000, `${nameCharacters} characters are read`)
  const types = Array.from({ length: 200 }, (_, at) => ({ name: `printer-${at}.local`, addresses: ['192.168.1.5'] }))
  t.equal(messageIn(writeWithdrawal(types))?.answers.length, 200, 'many short names are read')
})

test('bytes drawn at random are read or ignored', async (t) => {
  const good = [writeProbe([dual]), writeResponse([pi, ofIPv6].map((one) => ({ ...one, ...any })))]
  let seed = 7
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed % below
  }
  for (let round = 0; round < 5_000; round++) {
    const bytes = Buffer.from(good[round % 2] ?? '')
    for (let change = 0; change < 3; change++) bytes[next(bytes.length)] = next(256)
    t.doesNotThrow(() => messageIn(bytes.subarray(0, next(bytes.length + 1))))
  }
})
