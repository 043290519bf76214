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
  const head = Buffer.alloc(headBytes)
  let headFilled = 0
  let name: StreamRun['stream'] = 'stdout'
  /** Bytes left of the current frame. */
  let left = 0

  const begin = (from: Buffer, at: number): StreamRun['stream'] => {
    const number = from.readUInt8(at)
    left = from.readUInt32BE(at + 4)
    if (number > 2 || left > longestFrame) throw new Error('Docker sent invalid frames')
    return number === 2 ? 'stderr' : 'stdout'
  }

  return (piece) => {
    const runs: StreamRun[] = []
    const { length } = piece
    /** From where it is read, to where it is moved, and where the run begins. */
    let at = 0
    let to = 0
    let from = 0
    while (at < length) {
      if (left > 0) {
        const end = Math.min(at + left, length)
        if (at !== to) piece.copyWithin(to, at, end)
        to += end - at
        left -= end - at
        at = end
        continue
      }
      let next: StreamRun['stream']
      if (headFilled === 0 && length - at >= headBytes) {
        next = begin(piece, at)
        at += headBytes
      } else {
        const copied = piece.copy(head, headFilled, at)
        at += copied
        headFilled += copied
        if (headFilled < headBytes) break
        headFilled = 0
        next = begin(head, 0)
      }
      if (next === name) continue
      if (to > from) runs.push({ stream: name, bytes: piece.subarray(from, to) })
      from = to
      name = next
    }
    if (to > from) runs.push({ stream: name, bytes: piece.subarray(from, to) })
    return runs
  }
}
