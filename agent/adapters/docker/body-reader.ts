/** The body of an HTTP/1.1 response of Docker, read by the piece: Node.js hands on a chunk at a time, and Docker sends one for each line of a log. */

/** From the bytes of a connection to those of the body. */
export interface BodyReader {
  /** The bytes of the body in a piece, moved together in place: the piece must not be used afterwards. Throws if they are not a valid body. */
  read(piece: Buffer): Buffer
  /** Nothing follows. */
  readonly isEnded: boolean
  /** The connection may end here. */
  readonly mayEnd: boolean
}

/** A response, as far as it is needed to read the body. */
export type ResponseHead = {
  readonly status: number
  readonly isChunked: boolean
  /** undefined: until the connection is closed, or in chunks. */
  readonly length: number | undefined
  /** The offset of the body. */
  readonly bodyAt: number
}

const longestHead = 16 * 1024

/** undefined: its end has not arrived. Throws if it is invalid. */
export function responseHead(bytes: Buffer): ResponseHead | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0 && bytes.length <= longestHead) return undefined
  const text = bytes.toString('latin1', 0, Math.max(0, end))
  const status = /^HTTP\/1\.[01] (\d{3})\b/.exec(text)?.[1]
  if (status === undefined) throw new Error('Docker sent an invalid HTTP response')
  const length = /\r\ncontent-length: *(\d{1,15})(?:\r|$)/i.exec(text)?.[1]
  const isChunked = /\r\ntransfer-encoding: *chunked(?:\r|$)/i.test(text)
  return {
    status: Number(status),
    isChunked,
    length: length === undefined ? undefined : Number(length),
    bodyAt: end + 4,
  }
}

/** Reads what follows the head. */
export function bodyReader({ isChunked, length }: ResponseHead): BodyReader {
  return isChunked ? chunkedReader() : plainReader(length)
}

function plainReader(length: number | undefined): BodyReader {
  let left = length ?? Number.POSITIVE_INFINITY
  return {
    read(piece) {
      const body = piece.subarray(0, left)
      left -= body.length
      return body
    },
    get isEnded() {
      return left === 0
    },
    get mayEnd() {
      return left === 0 || length === undefined
    },
  }
}

const [lineFeed, carriageReturn] = [10, 13]
/** By the code of a character: the value of a hexadecimal digit; 255: not a digit. */
const hexadecimalDigits = new Uint8Array(256).fill(255)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  hexadecimalDigits[digit.charCodeAt(0)] = value
  hexadecimalDigits[digit.toUpperCase().charCodeAt(0)] = value
}
const longestChunk = 2 ** 31

/** RFC 9112, 7.1. Docker sends no extensions of chunks and no trailers. */
export type Chunk = {
  /** Bytes left of its data; 0: its line is next, after the end of line behind the data of the chunk before. */
  left: number
  isAfterData: boolean
  /** Its line, as far as it was read: the value and the number of its digits. */
  size: number
  seen: number
  /** It is the last, which has no data. */
  isEnded: boolean
}

export function firstChunk(): Chunk {
  return { left: 0, isAfterData: false, size: 0, seen: 0, isEnded: false }
}

/** Reads on to the data of the chunk, or to the end of the piece. Returns the offset behind what was read. Throws where there is no chunk. */
export function readChunkLine(chunk: Chunk, piece: Buffer, from: number): number {
  const { length } = piece
  let at = chunk.isAfterData ? readDataEnd(chunk, piece, from) : from
  // The agent interprets JavaScript: variables are faster than fields.
  let { size, seen } = chunk
  while (at < length) {
    const byte = piece[at++] ?? 0
    const digit = hexadecimalDigits[byte] ?? 255
    if (digit < 16) {
      size = size * 16 + digit
      seen++
      if (size > longestChunk) refuse()
      continue
    }
    if (byte === carriageReturn) continue
    if (byte !== lineFeed || seen === 0) refuse()
    chunk.left = size
    chunk.isEnded = size === 0
    chunk.isAfterData = true
    chunk.size = 0
    chunk.seen = 0
    return at
  }
  chunk.size = size
  chunk.seen = seen
  return at
}

/** The same for the end of line behind the data. */
function readDataEnd(chunk: Chunk, piece: Buffer, from: number): number {
  let at = from
  for (let byte = piece[at]; byte !== undefined; byte = piece[++at]) {
    if (byte === carriageReturn) continue
    if (byte !== lineFeed) refuse()
    chunk.isAfterData = false
    return at + 1
  }
  return at
}

function refuse(): never {
  throw new Error('Docker sent invalid chunks')
}

function chunkedReader(): BodyReader {
  const chunk = firstChunk()
  return {
    read: (piece) => dataIn(chunk, piece),
    get isEnded() {
      return chunk.isEnded
    },
    get mayEnd() {
      return chunk.isEnded
    },
  }
}

function dataIn(chunk: Chunk, piece: Buffer): Buffer {
  const { length } = piece
  let at = 0
  let to = 0
  while (at < length && !chunk.isEnded) {
    if (chunk.left === 0) {
      at = readChunkLine(chunk, piece, at)
      continue
    }
    const end = Math.min(at + chunk.left, length)
    if (at !== to) piece.copyWithin(to, at, end)
    to += end - at
    chunk.left -= end - at
    at = end
  }
  return piece.subarray(0, to)
}
