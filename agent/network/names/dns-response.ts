/** Records → the bytes of an answer (RFC 1035, section 4). */
import { parseAddressBlock } from '../../../api/text/address-block.ts'
import { writeName } from './dns-name.ts'
import { type DnsCode, type DnsQuery, dnsTypes, headBytes, internetClass } from './dns-query.ts'

/** Default of `name`: that of the question. A record with a name that does not fit into 255 bytes is left out of the answer. */
export type DnsRecord = { readonly name?: string; readonly ttl: number } & (
  | { readonly type: 'A' | 'AAAA'; readonly address: string }
  | { readonly type: 'CNAME' | 'PTR' | 'NS'; readonly target: string }
  | {
      readonly type: 'SRV'
      readonly priority: number
      readonly weight: number
      readonly port: number
      readonly target: string
    }
  | { readonly type: 'TXT'; readonly text: string }
  | { readonly type: 'SOA'; readonly server: string; readonly mailbox: string; readonly numbers: readonly number[] }
  /** Record from another server. Its data are copied unchanged, so they must not contain compressed names. */
  | { readonly type: 'other'; readonly code: number; readonly data: Uint8Array }
)

export type DnsAnswer = {
  readonly code: DnsCode
  /** The name is in this server's own zone. */
  readonly isAuthoritative?: boolean
  readonly answers?: readonly DnsRecord[]
  readonly authorities?: readonly DnsRecord[]
  readonly additional?: readonly DnsRecord[]
}

/** What an answer over UDP may have at most without fragments on every link (dnsflagday.net/2020). */
const largestUdp = 1_232
const largestTcp = 65_535
/** UDP limit of clients without EDNS (RFC 1035, 4.2.1). */
const usualUdp = 512
const optionBytes = 11
const isResponse = 0x80
const isTruncated = 0x02
const isAuthoritativeBit = 0x04
const recursionAvailable = 0x80

/** The most bytes that an answer to this client may have. */
export function answerLimit({ edns }: DnsQuery, transport: 'udp' | 'tcp'): number {
  if (transport === 'tcp') return largestTcp
  return edns === undefined ? usualUdp : Math.min(largestUdp, edns.udpBytes)
}

/** Answers that do not fit into `limit` bytes are left out, and TC asks the client to repeat its question over TCP. */
export function writeDnsAnswer(query: DnsQuery, answer: DnsAnswer, limit: number): Buffer {
  const { code, isAuthoritative = false, answers = [], authorities = [], additional = [] } = answer
  const tail = query.edns === undefined ? [] : [optionRecord(query, code)]
  const room = limit - tail.length * optionBytes
  const parts: Uint8Array[] = [query.question]
  let bytes = headBytes + query.question.length
  /** How many of them fit. */
  const take = (records: readonly DnsRecord[]): { readonly count: number; readonly isAll: boolean } => {
    let count = 0
    for (const record of records) {
      const written = writeRecord(record)
      if (written === undefined) continue
      if (bytes + written.length > room) return { count, isAll: false }
      parts.push(written)
      bytes += written.length
      count += 1
    }
    return { count, isAll: true }
  }
  const taken = take(answers)
  const others = taken.isAll ? [take(authorities).count, take(additional).count] : [0, 0]
  const [authorityCount = 0, additionalCount = 0] = others
  const head = Buffer.alloc(headBytes)
  head.writeUInt16BE(query.id, 0)
  head[2] =
    isResponse | (query.flags & 0x79) | (isAuthoritative ? isAuthoritativeBit : 0) | (taken.isAll ? 0 : isTruncated)
  head[3] = recursionAvailable | (query.isCheckingDisabled ? 0x10 : 0) | (code & 0x0f)
  const counts = [query.question.length > 0 ? 1 : 0, taken.count, authorityCount, additionalCount + tail.length]
  for (const [index, count] of counts.entries()) head.writeUInt16BE(count, 4 + index * 2)
  return Buffer.concat([head, ...parts, ...tail])
}

/** The OPT record of an answer: what this server takes over UDP, and the upper bits of the code. */
export function optionRecord({ edns }: Pick<DnsQuery, 'edns'>, code: DnsCode): Buffer {
  const record = Buffer.alloc(optionBytes)
  record.writeUInt16BE(dnsTypes.OPT, 1)
  record.writeUInt16BE(largestUdp, 3)
  record[5] = code >> 4
  record[7] = edns?.isSecurityAware === true ? 0x80 : 0
  return record
}

/** The name of the question begins after the head. */
const questionName = Uint8Array.of(0xc0, headBytes)

function writeRecord(record: DnsRecord): Buffer | undefined {
  const name = record.name === undefined ? questionName : writeName(record.name)
  const data = writeData(record)
  if (name === undefined || data === undefined) return undefined
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(record.type === 'other' ? record.code : dnsTypes[record.type], 0)
  fixed.writeUInt16BE(internetClass, 2)
  fixed.writeUInt32BE(record.ttl, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([name, fixed, data])
}

function writeData(record: DnsRecord): Uint8Array | undefined {
  switch (record.type) {
    case 'A':
      return Uint8Array.from(record.address.split('.'), Number)
    case 'AAAA':
      return Uint8Array.from(parseAddressBlock(`${record.address}/128`)?.bytes ?? [])
    case 'CNAME':
    case 'PTR':
    case 'NS':
      return writeName(record.target)
    case 'SRV': {
      const target = writeName(record.target)
      return target && Buffer.concat([twoByteNumbers(record.priority, record.weight, record.port), target])
    }
    case 'TXT': {
      const text = Buffer.from(record.text).subarray(0, 255)
      return Buffer.concat([Uint8Array.of(text.length), text])
    }
    case 'SOA': {
      const [server, mailbox] = [writeName(record.server), writeName(record.mailbox)]
      const numbers = Buffer.alloc(4 * record.numbers.length)
      for (const [index, number] of record.numbers.entries()) numbers.writeUInt32BE(number, 4 * index)
      return server && mailbox && Buffer.concat([server, mailbox, numbers])
    }
    case 'other':
      return record.data
  }
}

function twoByteNumbers(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * numbers.length)
  for (const [index, number] of numbers.entries()) bytes.writeUInt16BE(number, 2 * index)
  return bytes
}
