/** A body that another program sends, of which it chooses the length and the pieces. */

/** Each piece costs a microsecond or two, also of a body that is thrown away; those of networks have hundreds of bytes. */
const freePieces = 1_024
const leastMeanBytes = 64

/** Counts the pieces of one body. False: so many of them are so small that their sender is not to be read any further. */
export function pieceMeter(): (bytes: number) => boolean {
  let pieces = 0
  let total = 0
  return (bytes) => {
    pieces += 1
    total += bytes
    return pieces <= freePieces + total / leastMeanBytes
  }
}

export interface CollectedBytes {
  /** False: the body is longer than allowed, or cut up; what came so far is dropped. The piece may be used otherwise afterwards. */
  add(piece: Uint8Array): boolean
  /** It came in too many small pieces. */
  readonly isCutUp: boolean
  /** All of them, in one buffer. */
  take(): Buffer
}

const leastBytes = 4096

/**
 * Copies each piece behind the earlier ones. A list of pieces takes about 400 bytes for each of them, and a sender can have
 * every byte be one: chunks of HTTP, frames of HTTP/2, records of TLS.
 */
export function collectedBytes(mostBytes: number): CollectedBytes {
  const isFine = pieceMeter()
  let held = Buffer.alloc(0)
  let length = 0
  let isCutUp = false
  let isTooLong = false
  return {
    add(piece) {
      isCutUp ||= !isFine(piece.length)
      isTooLong ||= length + piece.length > mostBytes
      if (isCutUp || isTooLong) {
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
    get isCutUp() {
      return isCutUp
    },
    take: () => held.subarray(0, length),
  }
}
