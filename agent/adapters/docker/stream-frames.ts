/**
 * The frames in which Docker sends standard output and error of a container without a terminal: a byte for the stream, three of
 * zero, four for the length (Docker Engine API, ContainerAttach).
 */

export type StreamFrame = { readonly stream: 'stdin' | 'stdout' | 'stderr'; readonly payload: Buffer }

const headBytes = 8
/** Docker cuts lines of logs after 16 KiB, and reads 32 KiB of a process at a time. */
const longestFrame = 1024 * 1024
const streams = ['stdin', 'stdout', 'stderr'] as const

/** Gives the frames that a piece of the stream completes. Throws where it holds none of Docker's. */
export function frameReader(): (piece: Buffer) => StreamFrame[] {
  let held: Buffer[] = []
  let length = 0
  /** Before that many bytes are there, there is nothing to read. */
  let needed = headBytes

  return (piece) => {
    held.push(piece)
    length += piece.length
    if (length < needed) return []
    const bytes = held.length === 1 ? piece : Buffer.concat(held)
    const read = wholeFrames(bytes)
    held = read.end === bytes.length ? [] : [bytes.subarray(read.end)]
    length = bytes.length - read.end
    needed = read.needed
    return read.frames
  }
}

/** `end`: behind the last whole frame. `needed`: bytes of the next one, if its head is there. */
function wholeFrames(bytes: Buffer): { readonly frames: StreamFrame[]; readonly end: number; readonly needed: number } {
  const frames: StreamFrame[] = []
  let at = 0
  while (bytes.length - at >= headBytes) {
    const size = bytes.readUInt32BE(at + 4)
    const stream = streams[bytes.readUInt8(at)]
    if (stream === undefined || size > longestFrame) throw new Error('Docker sent invalid frames')
    const needed = headBytes + size
    if (bytes.length - at < needed) return { frames, end: at, needed }
    frames.push({ stream, payload: bytes.subarray(at + headBytes, at + needed) })
    at += needed
  }
  return { frames, end: at, needed: headBytes }
}

/** `2026-01-02T03:04:05.123456789Z`, which Docker pads with zeros, and a blank. */
const timeBytes = 31

/**
 * Docker cuts a line after 16 KiB into messages without an end of line, and puts the time before each of them. Gives the
 * payload without those times that stand within a line.
 */
export function withoutInnerTimes(): (frame: StreamFrame) => Buffer {
  const isWithinLine = { stdin: false, stdout: false, stderr: false }
  return ({ stream, payload }) => {
    const isContinued = isWithinLine[stream]
    isWithinLine[stream] = payload.at(-1) !== 10
    return isContinued && payload[timeBytes - 1] === 32 ? payload.subarray(timeBytes) : payload
  }
}
