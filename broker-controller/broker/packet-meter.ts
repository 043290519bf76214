/** How large is the MQTT packet that is arriving? Told by its header, before the rest of it is waited for. */

/** Takes what arrives, in pieces of any length; false once a packet is announced that is larger than allowed. */
export type PacketMeter = (piece: Uint8Array) => boolean

/** MQTT 3.1.1, 2.2: one byte of type, one to four of length (seven bits each, lowest first), then that many bytes. */
export function packetMeter(maxPacketBytes: number): PacketMeter {
  /** What is left of the present packet's body; undefined while its length is being read. */
  let left: number | undefined
  let length = 0
  let lengthBytes = 0
  let started = false

  const endOfPacket = () => {
    left = undefined
    length = 0
    lengthBytes = 0
    started = false
  }

  return (piece) => {
    for (let at = 0; at < piece.length; ) {
      if (left !== undefined) {
        const skipped = Math.min(left, piece.length - at)
        at += skipped
        left -= skipped
        if (left === 0) endOfPacket()
        continue
      }
      const byte = piece[at++] ?? 0
      if (!started) {
        started = true
        continue
      }
      length += (byte & 0x7f) * 128 ** lengthBytes
      lengthBytes += 1
      if (length > maxPacketBytes || (lengthBytes === 4 && byte >= 0x80)) return false
      if (byte < 0x80) left = length
      if (left === 0) endOfPacket()
    }
    return true
  }
}
