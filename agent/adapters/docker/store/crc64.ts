/** CRC-64/GO-ISO, as Go's hash/crc64 with the table ISO: the checksums of files in tar-split.json.gz. In two halves: Node.js has no fast 64 bits. */

export interface Crc64 {
  add(bytes: Uint8Array): void
  /** The sum of all bytes so far, the highest byte first. */
  digest(): Buffer
}

const polynomial = 0xd8000000
const [highOf, lowOf] = tables()

export function crc64(): Crc64 {
  let high = 0xffffffff
  let low = 0xffffffff
  return {
    add(bytes) {
      for (const byte of bytes) {
        const at = (low ^ byte) & 0xff
        low = ((low >>> 8) | (high << 24)) ^ (lowOf[at] ?? 0)
        high = (high >>> 8) ^ (highOf[at] ?? 0)
      }
    },
    digest() {
      const bytes = Buffer.alloc(8)
      bytes.writeUInt32BE(~high >>> 0, 0)
      bytes.writeUInt32BE(~low >>> 0, 4)
      return bytes
    },
  }
}

function tables(): readonly [Uint32Array, Uint32Array] {
  const [highs, lows] = [new Uint32Array(256), new Uint32Array(256)]
  for (let byte = 0; byte < 256; byte++) {
    let high = 0
    let low = byte
    for (let bit = 0; bit < 8; bit++) {
      const isOdd = (low & 1) === 1
      low = (low >>> 1) | (high << 31)
      high = (high >>> 1) ^ (isOdd ? polynomial : 0)
    }
    highs[byte] = high
    lows[byte] = low
  }
  return [highs, lows]
}
