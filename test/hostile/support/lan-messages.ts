/** Messages of DNS and multicast DNS, and requests of HTTP, that no honest program sends. */
import { dnsQuestion } from '../../../agent/network/testing/dns-client.ts'

/** Name, type A and class IN. */
function questionOf(name: readonly number[]): readonly number[] {
  return [...name, 0, 1, 0, 1]
}

/** RFC 1035, section 4.1.1. */
function head(counts: readonly [number, number, number, number], flags = 0): readonly number[] {
  return [0, 7, flags >> 8, flags & 255, ...counts.flatMap((count) => [count >> 8, count & 255])]
}

function message(...parts: readonly (readonly number[])[]): Buffer {
  return Buffer.from(parts.flat())
}

/** The longest name, of bytes that are written as four characters each. */
const longestName = [...[63, 63, 63, 61].flatMap((size) => [size, ...Array(size).fill(255)]), 0]
const start = 12
const loop = [0xc0, start]
/** One name that points to the byte before itself, and so on. */
const chain = [1, 97, ...Array.from({ length: 100 }, (_, at) => [0xc0, start + (at === 0 ? 0 : 2 * at)]).flat()]

/** For the name server and for multicast DNS. */
export const malformedNames: readonly Buffer[] = [
  Buffer.alloc(0),
  Buffer.alloc(11),
  message(head([1, 0, 0, 0])),
  message(head([65_535, 65_535, 65_535, 65_535])),
  message(head([1, 0, 0, 0]), questionOf(loop)),
  message(head([1, 0, 0, 0]), questionOf([0xc0, 0xff])),
  message(head([1, 0, 0, 0]), questionOf(chain)),
  message(head([1, 0, 0, 0]), questionOf(longestName)),
  message(head([1, 0, 0, 0]), questionOf([63, ...Array(63).fill(97), 63, ...Array(200).fill(97)])),
  message(head([1, 0, 0, 0]), [64, ...Array(64).fill(97), 0]),
  message(head([1, 0, 0, 0]), questionOf(Array(1_000).fill(1))),
  message(head([2, 0, 0, 0]), questionOf(longestName), questionOf(loop)),
  message(head([0, 1, 0, 0], 0x8400), [...longestName, 0, 1, 0, 1, 0, 0, 0, 9, 255, 255, 1]),
  message(head([1, 0, 0, 1]), questionOf([0]), [0, 0, 41, 255, 255, 0, 0, 0, 0, 255, 255]),
  message(head([1, 0, 0, 0], 0x7800), questionOf([0])),
  message(head([1, 0, 0, 0], 0x8000), questionOf([0])),
  Buffer.alloc(1_400, 0xff),
]

/** As many names as a message may have, of one name. `kind`: the flags of a query, or of a response. */
export function costlyMulticast(kind: 'query' | 'response'): Buffer {
  const entries = 256
  const more = Array.from({ length: entries - 1 }, () => questionOf(loop)).flat()
  if (kind === 'query') return message(head([entries, 0, 0, 0]), questionOf(longestName), more)
  const record = (name: readonly number[]) => [...name, 0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, 10, 0, 0, 1]
  const records = Array.from({ length: entries - 1 }, () => record(loop)).flat()
  return message(head([0, entries, 0, 0], 0x8400), record(longestName), records)
}

/** A response: the name has this address. */
export function claimOf(name: string, address: string): Buffer {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  const data = [0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, ...address.split('.').map(Number)]
  return message(head([0, 1, 0, 0], 0x8400), [...labels, 0], data)
}

function overTcp(length: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(length >> 8, length & 255), bytes])
}

const question = dnsQuestion('pi-1.node.cluster.local', 'A')

/** Beginnings of connections to the name server. */
export const namesOverTcp: readonly Buffer[] = [
  Buffer.alloc(0),
  Buffer.of(0),
  overTcp(0, Buffer.alloc(0)),
  overTcp(65_535, Buffer.alloc(60_000, 1)),
  overTcp(4_094, Buffer.alloc(100)),
  overTcp(question.length, question.subarray(0, 20)),
  Buffer.concat(Array.from({ length: 500 }, () => overTcp(question.length, question))),
  ...malformedNames.map((one) => overTcp(one.length, one)),
]

export const honestQuestion = question

/** Beginnings of connections to a health check. */
export const healthRequests: readonly Buffer[] = [
  '',
  'GET / HTTP/1.1\r\nHost: x\r\nX: ',
  `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}`,
  'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200),
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n',
  'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
  '\0'.repeat(1_000),
].map((text) => Buffer.from(text))
