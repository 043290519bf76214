/** A body that another program sends, of which it chooses the length and the pieces. */

export interface CollectedBytes {
  /** False: the body would be longer than allowed; what came so far is dropped. The piece may be used otherwise afterwards. */
  add(piece: Uint8Array): boolean
  /** All of them, in one buffer. */
  take(): Buffer
}

const leastBytes = 4096

/**
 * Copies each piece behind the earlier ones. A list of pieces takes about 400 bytes for each of them, and a sender can have
 * every byte be one: chunks of HTTP, frames of HTTP/2, records of TLS.
 */
export function collectedBytes(mostBytes: number): CollectedBytes {
  let held = Buffer.alloc(0)
  let length = 0
  let isTooLong = false
  return {
    add(piece) {
      isTooLong ||= length + piece.length > mostBytes
      if (isTooLong) {
        held = Buffer.alloc(0)
        length = 0
        return false
      }
      const needed = length + piece.length
      if (needed > held.length) {
        // Most bodies come in one piece.
        const wanted = length === 0 ? needed : Math.max(leastBytes, needed, 2 * held.length)
        const larger = Buffer.allocUnsafeSlow(Math.min(mostBytes, wanted))
        held.copy(larger, 0, 0, length)
        held = larger
      }
      held.set(piece, length)
      length = needed
      return true
    },
    take: () => held.subarray(0, length),
  }
}
