/** Answers of other servers: which of them belong to a question, how long they may be kept, and how clients get them. */
import { type NameText, readName } from './dns-name.ts'
import { type DnsCode, type DnsQuery, dnsCodes, dnsTypes, headBytes, internetClass } from './dns-query.ts'
import { type DnsRecord, optionRecord } from './dns-response.ts'

export type UpstreamQuestion = Pick<DnsQuery, 'question' | 'name' | 'type' | 'isCheckingDisabled' | 'flags'> & {
  readonly isSecurityAware: boolean
}

export type UpstreamAnswer = {
  readonly code: DnsCode
  readonly isTruncated: boolean
  /** With the question and without the OPT record, which is between two hops only (RFC 6891, section 6.1.1). */
  readonly bytes: Buffer
  /** Where its records have their times to live. */
  readonly ttlOffsets: readonly number[]
  /** Seconds for which it may be kept. */
  readonly ttl: number
}

/** In seconds. That a name does not exist is kept shorter, so that a new one is found soon; a failure is asked again at once. */
const longestTtl = { found: 86_400, notFound: 60, failed: 1 } as const
const usualUdpBytes = 1_232

/** The message to the other server. `id` is unpredictable: otherwise anyone could answer. */
export function writeUpstreamQuery(query: UpstreamQuestion, id: number, hasOptions: boolean): Buffer {
  const head = Buffer.alloc(headBytes)
  head.writeUInt16BE(id, 0)
  head[2] = 0x01 // recursion desired
  head[3] = query.isCheckingDisabled ? 0x10 : 0
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(hasOptions ? 1 : 0, 10)
  if (!hasOptions) return Buffer.concat([head, query.question])
  const options = optionRecord({ edns: { udpBytes: usualUdpBytes, isSecurityAware: query.isSecurityAware } }, 0)
  return Buffer.concat([head, query.question, options])
}

/** undefined: it is not a well-formed answer to this question with this id. Never throws. */
export function readUpstreamAnswer(bytes: Buffer, query: UpstreamQuestion, id: number): UpstreamAnswer | undefined {
  if (bytes.length < headBytes || bytes.readUInt16BE(0) !== id || (bytes.readUInt8(2) & 0xf8) !== 0x80) return undefined
  const [questions = 0, answers = 0, authorities = 0, additional = 0] = [4, 6, 8, 10].map((at) =>
    bytes.readUInt16BE(at),
  )
  const named = readName(bytes, headBytes, false)
  if (questions !== 1 || named === undefined || named.name !== query.name || named.end + 4 > bytes.length)
    return undefined
  const [type, ofClass] = [bytes.readUInt16BE(named.end), bytes.readUInt16BE(named.end + 2)]
  if (type !== query.type || ofClass !== internetClass) return undefined
  const found = readRecords(bytes, named.end + 4, answers + authorities + additional)
  if (found === undefined) return undefined
  const optionAt = found.find((record) => record.type === dnsTypes.OPT)
  // What follows the options is left out with them: nothing points forward, and clients need none of it.
  const kept = optionAt === undefined ? found : found.slice(0, found.indexOf(optionAt))
  const own = Buffer.from(bytes.subarray(0, optionAt?.start ?? found.at(-1)?.end ?? named.end + 4))
  own.writeUInt16BE(Math.max(0, kept.length - answers - authorities), 10)
  const code = (bytes.readUInt8(3) & 0x0f) | ((optionAt === undefined ? 0 : (bytes[optionAt.ttlAt] ?? 0)) << 4)
  return {
    code,
    isTruncated: (bytes.readUInt8(2) & 0x02) !== 0,
    bytes: own,
    ttlOffsets: kept.map(({ ttlAt }) => ttlAt),
    ttl: lifetime(bytes, kept, code, answers),
  }
}

type FoundRecord = {
  readonly start: number
  readonly type: number
  readonly ttlAt: number
  readonly end: number
}

function readRecords(bytes: Buffer, from: number, count: number): readonly FoundRecord[] | undefined {
  const found: FoundRecord[] = []
  let at = from
  for (let record = 0; record < count; record++) {
    const named = readName(bytes, at, true)
    if (named === undefined || named.end + 10 > bytes.length) return undefined
    const end = named.end + 10 + bytes.readUInt16BE(named.end + 8)
    if (end > bytes.length) return undefined
    found.push({ start: at, type: bytes.readUInt16BE(named.end), ttlAt: named.end + 4, end })
    at = end
  }
  return found
}

/** The shortest of its records. That no record is there may be kept as long as the SOA allows (RFC 2308), at most a minute. */
function lifetime(bytes: Buffer, records: readonly FoundRecord[], code: DnsCode, answers: number): number {
  if (code !== dnsCodes.noError && code !== dnsCodes.nameError) return longestTtl.failed
  const most = answers === 0 || code === dnsCodes.nameError ? longestTtl.notFound : longestTtl.found
  // The last number of a SOA is its own limit. A negative number counts as none (RFC 2181, section 8).
  const ttls = records.flatMap(({ type, ttlAt, end }) =>
    type === dnsTypes.SOA && end - ttlAt >= 10
      ? [bytes.readInt32BE(ttlAt), bytes.readInt32BE(end - 4)]
      : [bytes.readInt32BE(ttlAt)],
  )
  return Math.max(0, Math.min(most, ...ttls))
}

/** The answer as this client gets it. `ageSeconds`: how long it has been kept. `limit`: of bytes. */
export function relayAnswer(query: DnsQuery, answer: UpstreamAnswer, ageSeconds: number, limit: number): Buffer {
  const options = query.edns === undefined ? [] : [optionRecord(query, answer.code)]
  const whole = answer.bytes.length + options.reduce((sum, { length }) => sum + length, 0) <= limit
  const bytes = Buffer.from(whole ? answer.bytes : answer.bytes.subarray(0, headBytes + query.question.length))
  if (whole)
    for (const at of answer.ttlOffsets) bytes.writeUInt32BE(Math.max(0, bytes.readUInt32BE(at) - ageSeconds), at)
  else for (const at of [6, 8, 10]) bytes.writeUInt16BE(0, at)
  bytes.writeUInt16BE(query.id, 0)
  bytes[2] = 0x80 | (query.flags & 0x79) | (answer.isTruncated || !whole ? 0x02 : 0)
  const isAuthentic = query.edns?.isSecurityAware === true ? (bytes[3] ?? 0) & 0x20 : 0
  bytes[3] = 0x80 | isAuthentic | (query.isCheckingDisabled ? 0x10 : 0) | (answer.code & 0x0f)
  bytes.set(query.question, headBytes)
  if (options.length > 0) bytes.writeUInt16BE(bytes.readUInt16BE(10) + 1, 10)
  return Buffer.concat([bytes, ...options])
}

/** The aliases and addresses among its answers, for the answer to an alias of this server's own. */
export function addressRecordsIn({ bytes }: UpstreamAnswer): readonly DnsRecord[] {
  const named = readName(bytes, headBytes, false)
  const found = readRecords(bytes, (named?.end ?? 0) + 4, bytes.readUInt16BE(6)) ?? []
  return found.flatMap(({ start, type, ttlAt, end }): readonly DnsRecord[] => {
    const name: NameText | undefined = readName(bytes, start, true)?.name
    const ttl = Math.min(longestTtl.notFound, Math.max(0, bytes.readInt32BE(ttlAt)))
    if (name === undefined) return []
    if (type === dnsTypes.CNAME) {
      const target = readName(bytes, ttlAt + 6, true)?.name
      return target === undefined ? [] : [{ type: 'CNAME', name, ttl, target }]
    }
    const isAddress = (type === dnsTypes.A && end - ttlAt === 10) || (type === dnsTypes.AAAA && end - ttlAt === 22)
    return isAddress ? [{ type: 'other', name, ttl, code: type, data: bytes.subarray(ttlAt + 6, end) }] : []
  })
}
