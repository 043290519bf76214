import { test } from 'tap'
import { mutatedBytes, randomNumbers } from '../../../daemon/testing/fuzz.ts'
import { dnsQuestion, seenAnswer } from '../testing/dns-client.ts'
import { type DnsQuery, readQuery } from './dns-query.ts'
import { answerLimit, type DnsRecord, writeDnsAnswer } from './dns-response.ts'

const queryOf = (bytes: Buffer): DnsQuery => {
  const read = readQuery(bytes)
  if (read.kind !== 'query') throw new Error(`It is ${read.kind}`)
  return read.query
}

test('a question has its name, type and what the client takes', async (t) => {
  const query = queryOf(dnsQuestion('WEB.default.svc.cluster.local', 'SRV', { id: 0xabcd, udpBytes: 4096 }))
  t.match(query, { id: 0xabcd, name: 'web.default.svc.cluster.local', type: 33, edns: { udpBytes: 4096 } })
  t.equal(answerLimit(query, 'udp'), 1232)
  t.equal(answerLimit(query, 'tcp'), 65_535)
  t.equal(answerLimit(queryOf(dnsQuestion('a.b', 'A')), 'udp'), 512)
  t.equal(answerLimit(queryOf(dnsQuestion('a.b', 'A', { udpBytes: 100 })), 'udp'), 512)
  t.equal(queryOf(dnsQuestion('a.b', 'A', { udpBytes: 512, isSecurityAware: true })).edns?.isSecurityAware, true)
})

test('what is not a query of a client gets an error, or nothing', async (t) => {
  const good = dnsQuestion('web.example', 'A', { udpBytes: 1232 })
  const changed = (at: number, ...bytes: readonly number[]) => {
    const other = Buffer.from(good)
    other.set(bytes, at)
    return other
  }
  const codeOf = (bytes: Buffer) => {
    const read = readQuery(bytes)
    return read.kind === 'refuse' ? read.code : read.kind
  }
  t.equal(codeOf(good), 'query')
  t.equal(codeOf(Buffer.alloc(11)), 'ignore')
  t.equal(codeOf(changed(2, 0x81)), 'ignore', 'an answer')
  t.equal(codeOf(changed(2, 0x10)), 4, 'another operation')
  t.equal(codeOf(changed(4, 0, 2)), 1, 'two questions')
  t.equal(codeOf(changed(4, 0, 0)), 1, 'no question')
  t.equal(codeOf(changed(6, 0, 1)), 1, 'an answer in it')
  t.equal(codeOf(changed(8, 0, 1)), 1)
  t.equal(codeOf(changed(10, 0, 9)), 1, 'many records')
  t.equal(codeOf(changed(10, 0, 2)), 1, 'a record that is not there')
  t.equal(codeOf(good.subarray(0, 20)), 1)
  t.equal(codeOf(Buffer.concat([changed(10, 0, 2), good.subarray(-11)])), 1, 'options twice')
  t.equal(codeOf(changed(good.length - 5, 1)), 16, 'a later EDNS')
  t.equal(codeOf(changed(28, 3)), 5, 'another class')
  t.equal(codeOf(changed(26, 252)), 5, 'a transfer of the zone')
})

test('an answer repeats the question as it was written, and has all kinds of records', async (t) => {
  const query = queryOf(dnsQuestion('WeB.example', 'A', { id: 9, udpBytes: 1232, isSecurityAware: true }))
  const answers: readonly DnsRecord[] = [
    { type: 'CNAME', ttl: 5, target: 'a.example' },
    { type: 'A', name: 'a.example', ttl: 5, address: '10.244.1.255' },
    { type: 'AAAA', name: 'a.example', ttl: 5, address: 'fd00:10:244:1::ff' },
    { type: 'SRV', ttl: 5, priority: 0, weight: 50, port: 8080, target: 'a.example' },
    { type: 'TXT', ttl: 5, text: '1.1.0' },
    { type: 'other', ttl: 5, code: 28, data: Buffer.alloc(16, 1) },
    { type: 'A', name: 'x'.repeat(64), ttl: 5, address: '10.0.0.1' },
  ]
  const authorities: readonly DnsRecord[] = [
    { type: 'SOA', name: 'example', ttl: 5, server: 'ns.example', mailbox: 'root.example', numbers: [1, 2, 3, 4, 5] },
  ]
  const seen = seenAnswer(writeDnsAnswer(query, { code: 0, isAuthoritative: true, answers, authorities }, 1232))
  t.match(seen, { id: 9, code: 0, isAuthoritative: true, isTruncated: false, question: 'WeB.example A' })
  t.same(
    seen.answers.map(({ name, type, data }) => [name, type, data]),
    [
      ['WeB.example', 'CNAME', 'a.example'],
      ['a.example', 'A', '10.244.1.255'],
      ['a.example', 'AAAA', 'fd0000100244000100000000000000ff'],
      ['WeB.example', 'SRV', '0 50 8080 a.example'],
      ['WeB.example', 'TXT', '1.1.0'],
      ['WeB.example', 'AAAA', '01'.repeat(16)],
    ],
    'the name that is too long is left out',
  )
  t.match(seen.authorities, [{ type: 'SOA', data: 'ns.example root.example 1 2 3 4 5' }])
  t.match(seen.additional, [{ type: 'OPT', name: '' }])
})

test('an answer that does not fit asks the client to come back over TCP', async (t) => {
  const answers = Array.from(
    { length: 100 },
    (_, index): DnsRecord => ({ type: 'A', ttl: 5, address: `10.244.1.${index}` }),
  )
  const plain = queryOf(dnsQuestion('web.example', 'A'))
  const bytes = writeDnsAnswer(plain, { code: 0, answers, additional: answers }, 512)
  const seen = seenAnswer(bytes)
  t.ok(bytes.length <= 512 && seen.answers.length > 25, `${bytes.length} bytes, ${seen.answers.length} answers`)
  t.equal(seen.isTruncated, true)
  t.equal(seen.additional.length, 0)
  const whole = seenAnswer(writeDnsAnswer(plain, { code: 0, answers }, 65_535))
  t.match(whole, { isTruncated: false, answers: { length: 100 } })
  const partly = seenAnswer(writeDnsAnswer(plain, { code: 0, answers: answers.slice(0, 10), additional: answers }, 512))
  t.equal(partly.isTruncated, false, 'additional records are only help')
})

test('whatever bytes arrive, reading ends and an answer to them is well formed', async (t) => {
  const random = randomNumbers()
  const seeds = [
    dnsQuestion('web.default.svc.cluster.local', 'A', { udpBytes: 1232 }),
    dnsQuestion('_http._tcp.web.default.svc.cluster.local', 'SRV'),
    Buffer.concat([dnsQuestion('a.b', 'A'), Buffer.from([0xc0, 12, 0, 41, 0xff, 0xff, 0, 0, 0, 0, 0, 2, 1, 2])]),
  ]
  let answered = 0
  for (let round = 0; round < 30_000; round++) {
    const bytes = mutatedBytes(seeds[round % seeds.length] ?? Buffer.alloc(0), random)
    const read = readQuery(bytes)
    if (read.kind === 'ignore') continue
    const answer = writeDnsAnswer(read.query, { code: read.kind === 'refuse' ? read.code : 0 }, 512)
    if (answer.length > 512) t.fail(`${answer.length} bytes for ${bytes.toString('hex')}`)
    if (seenAnswer(answer).id !== read.query.id) t.fail(bytes.toString('hex'))
    answered += 1
  }
  t.ok(answered > 10_000, `${answered} answers`)
})
