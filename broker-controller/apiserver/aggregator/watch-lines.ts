/** Divides the body of a watch into its lines, each within a bound. */
import { collectedBytes } from '../../../daemon/http/collected-bytes.ts'

const newline = 0x0a

/** `take` of the result: the lines that end in this part. Throws where one is too long or comes in too small pieces. */
export function linesOfWatch(mostBytes: number): (part: Buffer) => Iterable<Buffer> {
  let line = collectedBytes(mostBytes)
  const add = (piece: Buffer) => {
    if (!line.add(piece)) throw new Error(`a line of the watch is longer than ${mostBytes} bytes or too much cut up`)
  }
  return function* lines(part) {
    let start = 0
    for (let end = part.indexOf(newline); end >= 0; end = part.indexOf(newline, start)) {
      add(part.subarray(start, end))
      yield line.take()
      line = collectedBytes(mostBytes)
      start = end + 1
    }
    if (start < part.length) add(part.subarray(start))
  }
}
