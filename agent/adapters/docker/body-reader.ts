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
export const hexadecimalDigits = new Uint8Array(256).fill(255)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  hexadecimalDigits[digit.charCodeAt(0)] = value
  hexadecimalDigits[digit.toUpperCase().charCodeAt(0)] = value
}
const longestChunk = 2 ** 31

/** RFC 9112, 7.1. Docker sends no extensions of chunks and no trailers. */
function chunkedReader(): BodyReader {
  /** Bytes left of the current chunk, after its line. */
  let left = 0
  let size = 0
  /** Digits of the chunk's line read so far. */
  let seen = 0
  /** What is next: a line, data, the end of line after data, or nothing but the end of the last chunk. */
  let next: 'line' | 'data' | 'end of data' | 'end' = 'line'

  const refuse = (): never => {
    throw new Error('Docker sent invalid chunks')
  }
  const lineEnds = () => {
    if (seen === 0) refuse()
    next = size === 0 ? 'end' : 'data'
    left = size
    size = 0
    seen = 0
  }
  return {
    read(piece) {
      const { length } = piece
      let at = 0
      let to = 0
      while (at < length && next !== 'end') {
        if (next === 'data') {
          const end = Math.min(at + left, length)
          if (at !== to) piece.copyWithin(to, at, end)
          to += end - at
          left -= end - at
          at = end
          if (left === 0) next = 'end of data'
          continue
        }
        const byte = piece[at++] ?? 0
        if (byte === carriageReturn) continue
        if (next === 'end of data') {
          if (byte !== lineFeed) refuse()
          next = 'line'
        } else if (byte === lineFeed) lineEnds()
        else {
          const digit = hexadecimalDigits[byte] ?? 255
          size = size * 16 + digit
          seen++
          if (digit === 255 || size > longestChunk) refuse()
        }
      }
      return piece.subarray(0, to)
    },
    get isEnded() {
      return next === 'end'
    },
    get mayEnd() {
      return next === 'end'
    },
  }
}
