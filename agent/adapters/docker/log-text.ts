/**
 * The text of a log out of Docker's response, in one pass: each line comes in a frame (Docker Engine API, ContainerAttach) in a chunk
 * (RFC 9112, 7.1) of its own, and to read first the one and then the other costs the agent twice as much for each line.
 */
import { type BodyReader, bodyReader, type Chunk, firstChunk, type ResponseHead, readChunkLine } from './body-reader.ts'
import { runReader } from './stream-runs.ts'

const headBytes = 8
/** Docker cuts lines of logs after 16 KiB. */
const longestFrame = 1024 * 1024

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

/** The frame that is read, in which a head that was cut has `filled` bytes. */
type Frame = { left: number; readonly head: Buffer; filled: number }

function framesInChunks(): BodyReader {
  const chunk = firstChunk()
  const frame: Frame = { left: 0, head: Buffer.alloc(headBytes), filled: 0 }
  return {
    read: (piece) => textIn(chunk, frame, piece),
    get isEnded() {
      return chunk.isEnded
    },
    get mayEnd() {
      return chunk.isEnded
    },
  }
}

function textIn(chunk: Chunk, frame: Frame, piece: Buffer): Buffer {
  const { length } = piece
  // The agent interprets JavaScript: variables are faster than fields, and plain operators than calls.
  let chunkLeft = chunk.left
  let frameLeft = frame.left
  let at = 0
  let to = 0
  while (at < length && !chunk.isEnded) {
    if (chunkLeft === 0) {
      chunk.left = 0
      at = readChunkLine(chunk, piece, at)
      chunkLeft = chunk.left
    } else if (frameLeft > 0) {
      const moved = Math.min(frameLeft, chunkLeft, length - at)
      if (at !== to) piece.copyWithin(to, at, at + moved)
      to += moved
      frameLeft -= moved
      chunkLeft -= moved
      at += moved
    } else if (frame.filled === 0 && chunkLeft >= headBytes && length - at >= headBytes) {
      frameLeft = frameLength(piece, at)
      chunkLeft -= headBytes
      at += headBytes
    } else {
      const copied = readCutHead(frame, piece, at, chunkLeft)
      frameLeft = frame.left
      chunkLeft -= copied
      at += copied
    }
  }
  chunk.left = chunkLeft
  frame.left = frameLeft
  return piece.subarray(0, to)
}

/** Returns how many bytes of the head were in the chunk and the piece. */
function readCutHead(frame: Frame, piece: Buffer, at: number, chunkLeft: number): number {
  const { head, filled } = frame
  const copied = piece.copy(head, filled, at, at + Math.min(headBytes - filled, chunkLeft))
  frame.filled = (filled + copied) % headBytes
  frame.left = frame.filled === 0 ? frameLength(head, 0) : 0
  return copied
}

/** Throws where there is no frame. */
function frameLength(bytes: Buffer, at: number): number {
  const most = bytes[at + 4] ?? 255
  const length = ((bytes[at + 5] ?? 255) << 16) | ((bytes[at + 6] ?? 255) << 8) | (bytes[at + 7] ?? 255)
  if ((bytes[at] ?? 255) > 2 || most > 0 || length > longestFrame) throw new Error('Docker sent invalid frames')
  return length
}
