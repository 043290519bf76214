/** Messages of multicast DNS: bytes that anyone on the link may have sent → questions and records, and back (RFC 6762, section 18). */
import { parseIPv6 } from '../../../api/text/ipv6-range.ts'
import { type NameText, readName, writeName } from '../names/dns-name.ts'
import { dnsTypes, headBytes, internetClass } from '../names/dns-query.ts'

export type MdnsQuestion = {
  readonly name: NameText
  readonly type: number
  /** Sent to the host that asked (QU). */
  readonly wantsUnicast: boolean
}

export type MdnsRecord = {
  readonly name: NameText
  readonly type: number
  readonly ttl: number
  readonly data: Uint8Array
}

/** Only the class IN: questions and records of other classes are dropped. */
export type MdnsMessage = {
  readonly id: number
  readonly isResponse: boolean
  readonly questions: readonly MdnsQuestion[]
  /** In a response: its answers and additional records. In a query: the answers that the sender already has. */
  readonly answers: readonly MdnsRecord[]
  /** In a query: the records that its sender wants to own alone. */
  readonly authorities: readonly MdnsRecord[]
}

/** A name and its addresses, of one family or both: at least one. */
export type HostName = { readonly name: NameText; readonly addresses: readonly string[] }

/** What is stated of a name: its records of this type, of all of them with `anyType`, or that it has none of the type. */
export type MdnsAnswer = HostName & { readonly type: number }

export const anyType = 255
const nsecType = 47
const anyClass = 255
/** In the class of a question: QU. In that of a record: it replaces what caches have. */
const topBit = 0x8000
/** RFC 6762, section 17. */
const longestMessage = 9_000
const mostEntries = 256
/**
 * Characters of all names of a message. By pointers each entry may have the longest name, which takes ten times as long to read as anything else
 * that fits a packet.
 */
const mostOfNames = longestMessage
/** In seconds, of records with addresses (RFC 6762, section 10), and in answers to resolvers of plain DNS (section 6.7). */
export const mdnsTtl = 120
const legacyTtl = 10

/** `message` undefined: it is malformed, too large, or of another operation. Characters of names are what takes time, also of such a one. */
export type MdnsReading = { readonly message: MdnsMessage | undefined; readonly nameCharacters: number }

/** Never throws. */
export function readMdnsMessage(bytes: Buffer): MdnsReading {
  const names = namesOf(bytes)
  const message = readMessage(bytes, names)
  return { message, nameCharacters: names.characters() }
}

/** `read`: as `readName`; undefined, too, where the message has more of them than is read. */
type Names = {
  read(from: number): ReturnType<typeof readName>
  characters(): number
}

function namesOf(bytes: Buffer): Names {
  let characters = 0
  return {
    read(from) {
      const named = characters > mostOfNames ? undefined : readName(bytes, from, true)
      characters += named?.name.length ?? 0
      return named
    },
    characters: () => characters,
  }
}

function readMessage(bytes: Buffer, names: Names): MdnsMessage | undefined {
  if (bytes.length < headBytes || bytes.length > longestMessage) return undefined
  const flags = bytes.readUInt16BE(2)
  if ((flags & 0x780f) !== 0) return undefined
  const [asked = 0, answered = 0, authority = 0, additional = 0] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at))
  if (asked + answered + authority + additional > mostEntries) return undefined
  const questions = readQuestions(bytes, names, asked)
  const answers = questions && readRecords(bytes, names, questions.end, answered)
  const authorities = answers && readRecords(bytes, names, answers.end, authority)
  const others = authorities && readRecords(bytes, names, authorities.end, additional)
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

function readQuestions(bytes: Buffer, names: Names, count: number): Found<MdnsQuestion> | undefined {
  const found: MdnsQuestion[] = []
  let at = headBytes
  for (let question = 0; question < count; question++) {
    const named = names.read(at)
    if (named === undefined || named.end + 4 > bytes.length) return undefined
    const [type, ofClass] = [bytes.readUInt16BE(named.end), bytes.readUInt16BE(named.end + 2)]
    const isInternet = [internetClass, anyClass].includes(ofClass & ~topBit)
    if (isInternet) found.push({ name: named.name, type, wantsUnicast: (ofClass & topBit) !== 0 })
    at = named.end + 4
  }
  return { found, end: at }
}

function readRecords(bytes: Buffer, names: Names, from: number, count: number): Found<MdnsRecord> | undefined {
  const found: MdnsRecord[] = []
  let at = from
  for (let record = 0; record < count; record++) {
    const named = names.read(at)
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
export function writeProbe(names: readonly HostName[]): Buffer {
  const questions = names.map(({ name }) => question(name, anyType, internetClass))
  const proposed = names.flatMap((host) => addressRecords(host, anyType, internetClass, mdnsTtl))
  return message({ flags: 0, questions, authorities: proposed })
}

/**
 * Whatever is asked of a name, all of the link get its addresses of both families (section 6.2), and the statement that it has no record of
 * another type (NSEC, section 6.1).
 */
export function writeResponse(stated: readonly MdnsAnswer[]): Buffer {
  const unique = internetClass | topBit
  const [answers, additional]: [Buffer[], Buffer[]] = [[], []]
  for (const host of stated) {
    const asked = addressRecords(host, host.type, unique, mdnsTtl)
    const others = addressRecords(host, anyType, unique, mdnsTtl).filter((one) => !asked.some((two) => one.equals(two)))
    const noOther = onlyAddresses(host, unique, mdnsTtl)
    answers.push(...(asked.length === 0 ? [noOther] : asked))
    additional.push(...others, ...(asked.length === 0 ? [] : [noOther]))
  }
  return message({ flags: 0x8400, answers, additional })
}

/** Withdraws the records (section 10.1), each without the cache-flush bit, as a name may keep others. */
export function writeWithdrawal(names: readonly HostName[]): Buffer {
  return message({ flags: 0x8400, answers: names.flatMap((host) => addressRecords(host, anyType, internetClass, 0)) })
}

/** To a resolver that does not use port 5353: it gets what a name server would answer (section 6.7). */
export function writeLegacyResponse(id: number, { name, type }: MdnsQuestion, { addresses }: HostName): Buffer {
  const answers = addressRecords({ name, addresses }, type, internetClass, legacyTtl)
  return message({ id, flags: 0x8400, questions: [question(name, type, internetClass)], answers })
}

/** As a record has it. */
export type AddressData = { readonly type: number; readonly data: Uint8Array }

export function addressData(address: string): AddressData {
  const number = parseIPv6(address)
  if (number === undefined) return { type: dnsTypes.A, data: Uint8Array.from(address.split('.'), Number) }
  return { type: dnsTypes.AAAA, data: Buffer.from(number.toString(16).padStart(32, '0'), 'hex') }
}

/** Records of the name that have this type, or all with `anyType`. */
export function recordsOfType({ addresses }: HostName, type: number): readonly AddressData[] {
  return addresses.map(addressData).filter((one) => type === anyType || one.type === type)
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

function addressRecords(host: HostName, type: number, ofClass: number, ttl: number): readonly Buffer[] {
  return recordsOfType(host, type).map((one) => record(host.name, one.type, ofClass, ttl, one.data))
}

/** The bitmap of types has those of its addresses alone: window 0, a bit for each type from the first bit of the first byte on (RFC 4034, section 4.1.2). */
function onlyAddresses(host: HostName, ofClass: number, ttl: number): Buffer {
  const types = recordsOfType(host, anyType).map(({ type }) => type)
  const bitmap = Buffer.alloc(Math.floor(Math.max(...types) / 8) + 1)
  for (const type of types) bitmap.writeUInt8(bitmap.readUInt8(type >> 3) | (0x80 >> (type & 7)), type >> 3)
  const data = Buffer.concat([nameBytes(host.name), Uint8Array.of(0, bitmap.length), bitmap])
  return record(host.name, nsecType, ofClass, ttl, data)
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
  if (written === undefined) throw new Error(`${name} is not a valid DNS name`)
  return written
}
