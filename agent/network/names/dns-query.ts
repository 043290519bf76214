/** A message of a client: bytes that anyone may have made → a question, or what is answered instead. */
import { type NameText, readName } from './dns-name.ts'

export const dnsTypes = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  IXFR: 251,
  AXFR: 252,
} as const

/** RFC 1035, section 4.1.1; badVersion: RFC 6891, section 9. */
export const dnsCodes = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
  badVersion: 16,
} as const
export type DnsCode = number

export const internetClass = 1
export const headBytes = 12

export type DnsQuery = {
  readonly id: number
  /** The first byte of its flags: opcode and RD are repeated in the answer. */
  readonly flags: number
  /** Answers are not to be checked (CD, RFC 4035): for the upstream. */
  readonly isCheckingDisabled: boolean
  readonly name: NameText
  readonly type: number
  /** Name, type and class as the client wrote them: an answer repeats them, letter case included. */
  readonly question: Uint8Array
  /** undefined: the client does not use EDNS (RFC 6891). */
  readonly edns: { readonly udpBytes: number; readonly isSecurityAware: boolean } | undefined
}

/** `refuse`: the answer is this code, without records. `ignore`: nothing is sent. */
export type ReadQuery =
  | { readonly kind: 'query'; readonly query: DnsQuery }
  | { readonly kind: 'refuse'; readonly query: DnsQuery; readonly code: DnsCode }
  | { readonly kind: 'ignore' }

/** What an answer to an unreadable message repeats: nothing but the id. */
const noQuestion = { isCheckingDisabled: false, name: '', type: 0, question: new Uint8Array(), edns: undefined }
/** Options such as cookies and padding follow; clients send one record, of transaction signatures a second. */
const mostAdditional = 4

/** Answers are ignored, so that two servers never answer each other. Never throws. */
export function readQuery(bytes: Buffer): ReadQuery {
  if (bytes.length < headBytes) return { kind: 'ignore' }
  const flags = bytes.readUInt8(2)
  if ((flags & 0x80) !== 0) return { kind: 'ignore' }
  const bare = { ...noQuestion, id: bytes.readUInt16BE(0), flags: flags & 0x79 }
  if ((flags & 0x78) !== 0) return { kind: 'refuse', query: bare, code: dnsCodes.notImplemented }
  const malformed: ReadQuery = { kind: 'refuse', query: bare, code: dnsCodes.formatError }
  const [questions, answers, authorities, additional] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at))
  if (questions !== 1 || answers !== 0 || authorities !== 0 || additional === undefined) return malformed
  const named = readName(bytes, headBytes, false)
  if (named === undefined || named.end + 4 > bytes.length || additional > mostAdditional) return malformed
  const options = readOptions(bytes, named.end + 4, additional)
  if (options === 'malformed') return malformed
  const query: DnsQuery = {
    ...bare,
    isCheckingDisabled: (bytes.readUInt8(3) & 0x10) !== 0,
    name: named.name,
    type: bytes.readUInt16BE(named.end),
    question: Buffer.from(bytes.subarray(headBytes, named.end + 4)),
    edns: options && { udpBytes: Math.max(512, options.udpBytes), isSecurityAware: options.isSecurityAware },
  }
  if (options !== undefined && options.version !== 0) return { kind: 'refuse', query, code: dnsCodes.badVersion }
  if (bytes.readUInt16BE(named.end + 2) !== internetClass) return { kind: 'refuse', query, code: dnsCodes.refused }
  const isTransfer = query.type === dnsTypes.AXFR || query.type === dnsTypes.IXFR
  return isTransfer ? { kind: 'refuse', query, code: dnsCodes.refused } : { kind: 'query', query }
}

type Options = { readonly version: number; readonly udpBytes: number; readonly isSecurityAware: boolean }

/** The OPT record; undefined: there is none. */
function readOptions(bytes: Buffer, from: number, count: number): Options | undefined | 'malformed' {
  let found: Options | undefined
  let at = from
  for (let record = 0; record < count; record++) {
    const named = readName(bytes, at, true)
    if (named === undefined || named.end + 10 > bytes.length) return 'malformed'
    const [type, end] = [bytes.readUInt16BE(named.end), named.end + 10 + bytes.readUInt16BE(named.end + 8)]
    if (end > bytes.length) return 'malformed'
    if (type === dnsTypes.OPT) {
      if (found !== undefined || named.name !== '') return 'malformed'
      found = {
        udpBytes: bytes.readUInt16BE(named.end + 2),
        version: bytes.readUInt8(named.end + 5),
        isSecurityAware: (bytes.readUInt8(named.end + 6) & 0x80) !== 0,
      }
    }
    at = end
  }
  return found
}
