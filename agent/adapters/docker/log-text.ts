/**
 * The text of a log out of Docker's response, in one pass: each line comes in a frame (Docker Engine API, ContainerAttach) in a chunk
 * (RFC 9112, 7.1) of its own, and to read first the one and then the other costs the agent twice as much for each line.
 */
import { type BodyReader, bodyReader, hexadecimalDigits, type ResponseHead } from './body-reader.ts'
import { runReader } from './stream-runs.ts'

const [lineFeed, carriageReturn] = [10, 13]
const headBytes = 8
/** Docker cuts lines of logs after 16 KiB. */
const longestFrame = 1024 * 1024
const longestChunk = 2 ** 31

/** Like `bodyReader`, for the log of a container without a terminal: what it gives is the text in the frames, of both streams. */
export function logTextReader(head: ResponseHead): BodyReader {
  return head.isChunked ? framesInChunks() : framesIn(bodyReader(head))
}

function framesIn(body: BodyReader): BodyReader {
  const read = runReader()
  return {
    read: (piece) => Buffer.concat(read(body.read(piece)).map(({ bytes }) => bytes)),
    get isEnded() {
      return body.isEnded
    },
    get mayEnd() {
      return body.mayEnd
    },
  }
}

type State = {
  /** Bytes left of the current chunk and the current frame. */
  readonly chunkLeft: number
  readonly frameLeft: number
  /** The end of line after the data of a chunk is next. */
  readonly isAfterData: boolean
  /** Line before a chunk: its value and the number of its digits so far. */
  readonly size: number
  readonly seen: number
  readonly isEnded: boolean
}

function framesInChunks(): BodyReader {
  let state: State = { chunkLeft: 0, frameLeft: 0, isAfterData: false, size: 0, seen: 0, isEnded: false }
  /** The head of a frame that was cut. */
  const head = Buffer.alloc(headBytes)
  let headFilled = 0
  return {
    read(piece) {
      const { length } = piece
      // The agent interprets JavaScript: variables of this function are faster than those around it, and so are plain operators than calls.
      let { chunkLeft, frameLeft, isAfterData, size, seen, isEnded } = state
      const digits = hexadecimalDigits
      let at = 0
      let to = 0
      while (at < length && !isEnded) {
        if (chunkLeft === 0) {
          let digit = digits[piece[at] ?? 0] ?? 255
          for (; digit < 16; digit = digits[piece[at] ?? 0] ?? 255) {
            size = size * 16 + digit
            seen++
            at++
          }
          if ((isAfterData && seen > 0) || size > longestChunk) refuse()
          if (at === length) break
          const byte = piece[at++]
          if (byte !== lineFeed) {
            if (byte !== carriageReturn) refuse()
          } else if (isAfterData) isAfterData = false
          else {
            if (seen === 0) refuse()
            isEnded = size === 0
            isAfterData = true
            chunkLeft = size
            size = 0
            seen = 0
          }
        } else if (frameLeft > 0) {
          const most = Math.min(frameLeft, chunkLeft)
          const end = most < length - at ? at + most : length
          if (at !== to) piece.copyWithin(to, at, end)
          const moved = end - at
          to += moved
          frameLeft -= moved
          chunkLeft -= moved
          at = end
        } else if (headFilled === 0 && chunkLeft >= headBytes && length - at >= headBytes) {
          frameLeft = frameLength(piece, at)
          chunkLeft -= headBytes
          at += headBytes
        } else {
          const copied = piece.copy(head, headFilled, at, at + Math.min(headBytes - headFilled, chunkLeft))
          headFilled = (headFilled + copied) % headBytes
          if (headFilled === 0) frameLeft = frameLength(head, 0)
          chunkLeft -= copied
          at += copied
        }
      }
      state = { chunkLeft, frameLeft, isAfterData, size, seen, isEnded }
      return piece.subarray(0, to)
    },
    get isEnded() {
      return state.isEnded
    },
    get mayEnd() {
      return state.isEnded
    },
  }
}

/** Throws where there is no frame. */
function frameLength(bytes: Buffer, at: number): number {
  const most = bytes[at + 4] ?? 255
  const length = ((bytes[at + 5] ?? 255) << 16) | ((bytes[at + 6] ?? 255) << 8) | (bytes[at + 7] ?? 255)
  if ((bytes[at] ?? 255) > 2 || most > 0 || length > longestFrame) throw new Error('Docker sent invalid frames')
  return length
}

function refuse(): never {
  throw new Error('Docker sent invalid chunks')
}
