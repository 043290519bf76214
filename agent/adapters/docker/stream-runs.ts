/**
 * Standard output and error of a container without a terminal, out of Docker's frames (Docker Engine API, ContainerAttach): a byte for
 * the stream, three of zero, four for the length. Other than `stream-frames.ts` it gives no single frames: a line of a log is one.
 */

export type StreamRun = { readonly stream: 'stdout' | 'stderr'; readonly bytes: Buffer }

const headBytes = 8
/** Docker cuts lines of logs after 16 KiB, and reads 32 KiB of a process at a time. */
const longestFrame = 1024 * 1024

/**
 * Gives what a piece holds, joined as long as the stream is the same. The bytes of the piece are moved together in place, so it must
 * not be used afterwards. Throws where it holds none of Docker's frames.
 */
export function runReader(): (piece: Buffer) => readonly StreamRun[] {
  const frame: Frame = { stream: 'stdout', left: 0, head: Buffer.alloc(headBytes), filled: 0 }
  return (piece) => runsIn(frame, piece)
}

/** The frame that is read: `left` bytes of it follow. A head that was cut has `filled` bytes. */
type Frame = { stream: StreamRun['stream']; left: number; readonly head: Buffer; filled: number }

function runsIn(frame: Frame, piece: Buffer): readonly StreamRun[] {
  const runs: StreamRun[] = []
  const { length } = piece
  /** From where it is read, to where it is moved, and where the run begins. */
  let at = 0
  let to = 0
  let from = 0
  while (at < length) {
    const { left, stream } = frame
    if (left > 0) {
      const end = Math.min(at + left, length)
      if (at !== to) piece.copyWithin(to, at, end)
      to += end - at
      frame.left = left - (end - at)
      at = end
      continue
    }
    at = readHead(frame, piece, at)
    if (frame.stream === stream) continue
    if (to > from) runs.push({ stream, bytes: piece.subarray(from, to) })
    from = to
  }
  if (to > from) runs.push({ stream: frame.stream, bytes: piece.subarray(from, to) })
  return runs
}

/** Returns the offset behind the part of the head that is in this piece. */
function readHead(frame: Frame, piece: Buffer, at: number): number {
  if (frame.filled === 0 && piece.length - at >= headBytes) {
    begin(frame, piece, at)
    return at + headBytes
  }
  const copied = piece.copy(frame.head, frame.filled, at)
  frame.filled = (frame.filled + copied) % headBytes
  if (frame.filled === 0) begin(frame, frame.head, 0)
  return at + copied
}

function begin(frame: Frame, bytes: Buffer, at: number): void {
  const number = bytes.readUInt8(at)
  frame.left = bytes.readUInt32BE(at + 4)
  if (number > 2 || frame.left > longestFrame) throw new Error('Docker sent invalid frames')
  frame.stream = number === 2 ? 'stderr' : 'stdout'
}
