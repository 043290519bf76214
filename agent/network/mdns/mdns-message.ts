/** Messages of multicast DNS: bytes that anyone on the link may have sent → questions and records, and back (RFC 6762, section 18). */
import { type NameText, readName, writeName } from '../names/dns-name.ts'
import { dnsTypes, headBytes, internetClass } from '../names/dns-query.ts'

export type MdnsQuestion = {
  readonly name: NameText
  readonly type: number
  /** Sent to the one who asked (QU). */
  readonly wantsUnicast: boolean
}

export type MdnsRecord = {
  readonly name: NameText
  readonly type: number
  readonly ttl: number
  readonly data: Uint8Array
}

/** Of the class IN; questions and records of other classes are left out. */
export type MdnsMessage = {
  readonly id: number
  readonly isResponse: boolean
  readonly questions: readonly MdnsQuestion[]
  /** Of a response: its answers and additional records. Of a query: what the sender has already. */
  readonly answers: readonly MdnsRecord[]
  /** Of a query: what its sender wants to be the only one to have. */
  readonly authorities: readonly MdnsRecord[]
}

export type AddressRecord = { readonly name: NameText; readonly address: string }

export const anyType = 255
const nsecType = 47
const anyClass = 255
/** In the class of a question: QU. In that of a record: it replaces what caches have. */
const topBit = 0x8000
/** RFC 6762, section 17. */
const longestMessage = 9_000
const mostEntries = 256
/** In seconds, of records with addresses (RFC 6762, section 10), and in answers to resolvers of plain DNS (section 6.7). */
export const mdnsTtl = 120
const legacyTtl = 10

/** undefined: it is malformed, too large, or of another operation. Never throws. */
export function readMdnsMessage(bytes: Buffer): MdnsMessage | undefined {
  if (bytes.length < headBytes || bytes.length > longestMessage) return undefined
  const flags = bytes.readUInt16BE(2)
  if ((flags & 0x780f) !== 0) return undefined
  const [asked = 0, answered = 0, authority = 0, additional = 0] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at))
  if (asked + answered + authority + additional > mostEntries) return undefined
  const questions = readQuestions(bytes, asked)
  const answers = questions && readRecords(bytes, questions.end, answered)
  const authorities = answers && readRecords(bytes, answers.end, authority)
  const others = authorities && readRecords(bytes, authorities.end, additional)
  if (others === undefined || authorities === undefined || answers === undefined || questions === undefined)
    return undefined
  const isResponse = (flags & topBit) !== 0
  return {
    id: bytes.readUInt16BE(0),
    isResponse,
    questions: questions.found,
    answers: isResponse ? [...answers.found, ...others.found] : answers.found,
    authorities: authorities.found,
  }
}

type Found<T> = { readonly found: readonly T[]; readonly end: number }

function readQuestions(bytes: Buffer, count: number): Found<MdnsQuestion> | undefined {
  const found: MdnsQuestion[] = []
  let at = headBytes
  for (let question = 0; question < count; question++) {
    const named = readName(bytes, at, true)
    if (named === undefined || named.end + 4 > bytes.length) return undefined
    const [type, ofClass] = [bytes.readUInt16BE(named.end), bytes.readUInt16BE(named.end + 2)]
    const isInternet = [internetClass, anyClass].includes(ofClass & ~topBit)
    if (isInternet) found.push({ name: named.name, type, wantsUnicast: (ofClass & topBit) !== 0 })
    at = named.end + 4
  }
  return { found, end: at }
}

function readRecords(bytes: Buffer, from: number, count: number): Found<MdnsRecord> | undefined {
  const found: MdnsRecord[] = []
  let at = from
  for (let record = 0; record < count; record++) {
    const named = readName(bytes, at, true)
    if (named === undefined || named.end + 10 > bytes.length) return undefined
    const [type, ofClass] = [bytes.readUInt16BE(named.end), bytes.readUInt16BE(named.end + 2)]
    const end = named.end + 10 + bytes.readUInt16BE(named.end + 8)
    if (end > bytes.length) return undefined
    const data = bytes.subarray(named.end + 10, end)
    if ((ofClass & ~topBit) === internetClass)
      found.push({ name: named.name, type, ttl: bytes.readUInt32BE(named.end + 4), data })
    at = end
  }
  return { found, end: at }
}

/**
 * The question whether another machine has these names, with what this one would give them (RFC 6762, section 8.1). Without the bit QU:
 * an answer to this machine alone would go to the program that has port 5353 of its address.
 */
export function writeProbe(records: readonly AddressRecord[]): Buffer {
  const questions = records.map(({ name }) => question(name, anyType, internetClass))
  const proposed = records.map((record) => addressRecord(record, internetClass, mdnsTtl))
  return message({ flags: 0, questions, authorities: proposed })
}

/**
 * `addresses`: names and their addresses. `absent`: names that have no record of the type asked for. Of both all get the address and the
 * statement that the name has no record of another type (NSEC, section 6.1). `ttl` 0: the records are withdrawn.
 */
export function writeResponse(
  addresses: readonly AddressRecord[],
  absent: readonly AddressRecord[] = [],
  ttl: number = mdnsTtl,
): Buffer {
  const unique = internetClass | topBit
  return message({
    flags: 0x8400,
    answers: [
      ...addresses.map((record) => addressRecord(record, unique, ttl)),
      ...absent.map(({ name }) => onlyAddress(name, unique, ttl)),
    ],
    additional:
      ttl === 0
        ? []
        : [
            ...without(addresses, absent).map(({ name }) => onlyAddress(name, unique, ttl)),
            ...without(absent, addresses).map((record) => addressRecord(record, unique, ttl)),
          ],
  })
}

function without(records: readonly AddressRecord[], others: readonly AddressRecord[]): readonly AddressRecord[] {
  return records.filter(({ name }) => !others.some((other) => other.name === name))
}

/** To a resolver that does not use port 5353: it gets what a name server would answer (section 6.7). */
export function writeLegacyResponse(
  id: number,
  { name, type }: MdnsQuestion,
  addresses: readonly AddressRecord[],
): Buffer {
  const answers = addresses.map((record) => addressRecord(record, internetClass, legacyTtl))
  return message({ id, flags: 0x8400, questions: [question(name, type, internetClass)], answers })
}

export function addressData(address: string): Uint8Array {
  return Uint8Array.from(address.split('.'), Number)
}

type Parts = {
  readonly id?: number
  readonly flags: number
  readonly questions?: readonly Buffer[]
  readonly answers?: readonly Buffer[]
  readonly authorities?: readonly Buffer[]
  readonly additional?: readonly Buffer[]
}

function message({ id = 0, flags, questions = [], answers = [], authorities = [], additional = [] }: Parts): Buffer {
  const head = Buffer.alloc(headBytes)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(flags, 2)
  const sections = [questions, answers, authorities, additional]
  for (const [index, { length }] of sections.entries()) head.writeUInt16BE(length, 4 + index * 2)
  return Buffer.concat([head, ...sections.flat()])
}

function question(name: NameText, type: number, ofClass: number): Buffer {
  const fixed = Buffer.alloc(4)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(ofClass, 2)
  return Buffer.concat([nameBytes(name), fixed])
}

function addressRecord({ name, address }: AddressRecord, ofClass: number, ttl: number): Buffer {
  return record(name, dnsTypes.A, ofClass, ttl, addressData(address))
}

/** The bitmap of types has A alone: window 0, one byte (RFC 4034, section 4.1.2). */
function onlyAddress(name: NameText, ofClass: number, ttl: number): Buffer {
  return record(name, nsecType, ofClass, ttl, Buffer.concat([nameBytes(name), Uint8Array.of(0, 1, 0x40)]))
}

function record(name: NameText, type: number, ofClass: number, ttl: number, data: Uint8Array): Buffer {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(ofClass, 2)
  fixed.writeUInt32BE(ttl, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([nameBytes(name), fixed, data])
}

/** Names of this node and of Services are checked where they are received, and fit. */
function nameBytes(name: NameText): Uint8Array {
  const written = writeName(name)
  if (written === undefined) throw new Error(`${name} is no name of DNS`)
  return written
}
