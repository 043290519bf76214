/** The size of the arriving MQTT packet, from its header, before the rest of it is received. */

/**
 * Takes pieces of any length in. The result is the number of bytes of this piece that belong to packets which end in it;
 * undefined: a packet is larger than allowed.
 */
export type PacketMeter = (piece: Uint8Array) => number | undefined

/** MQTT 3.1.1, 2.2: one byte of type, one to four of length (seven bits each, lowest first), then that many bytes. */
export function packetMeter(maxPacketBytes: number): PacketMeter {
  const header: Header = { started: false, length: 0, lengthBytes: 0, left: undefined }
  return (piece) => {
    let wholeBytes = 0
    for (let at = 0; at < piece.length; ) {
      if (header.left === undefined) {
        if (!readHeader(header, piece[at++] ?? 0, maxPacketBytes)) return undefined
      } else {
        const skipped = Math.min(header.left, piece.length - at)
        at += skipped
        header.left -= skipped
      }
      if (header.left === 0) {
        beginPacket(header)
        wholeBytes = at
      }
    }
    return wholeBytes
  }
}

/** What was read of the present packet's header. */
type Header = {
  started: boolean
  length: number
  lengthBytes: number
  /** What is left of the packet's body; undefined while its length is being read. */
  left: number | undefined
}

function beginPacket(header: Header): void {
  header.started = false
  header.length = 0
  header.lengthBytes = 0
  header.left = undefined
}

/** False: the packet is larger than allowed, or its length is longer than four bytes. */
function readHeader(header: Header, byte: number, maxPacketBytes: number): boolean {
  if (!header.started) {
    header.started = true
    return true
  }
  header.length += (byte & 0x7f) * 128 ** header.lengthBytes
  header.lengthBytes += 1
  if (header.length > maxPacketBytes || (header.lengthBytes === 4 && byte >= 0x80)) return false
  if (byte < 0x80) header.left = header.length
  return true
}

/**
 * Passes whole packets on, each call with one or more of them in one buffer. The parser of mqtt-packet keeps a list of pieces
 * and removes them one by one from its front: 250,000 pieces of one byte took it 115 s. False once a packet is too large.
 */
export function wholePackets(maxPacketBytes: number, pass: (packets: Buffer) => void): (piece: Buffer) => boolean {
  const meter = packetMeter(maxPacketBytes)
  /** The beginning of a packet, `heldBytes` long, with room for more. */
  let held = noBytes
  let heldBytes = 0

  const hold = (piece: Buffer) => {
    const neededBytes = heldBytes + piece.length
    if (neededBytes > held.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(neededBytes, 2 * held.length))
      held.copy(larger, 0, 0, heldBytes)
      held = larger
    }
    heldBytes += piece.copy(held, heldBytes)
  }

  return (piece) => {
    const wholeBytes = meter(piece)
    if (wholeBytes === undefined) return false
    const end = piece.subarray(0, wholeBytes)
    const rest = piece.subarray(wholeBytes)
    if (wholeBytes > 0 && heldBytes === 0) pass(end)
    if (wholeBytes > 0 && heldBytes > 0) {
      hold(end)
      const packets = held.subarray(0, heldBytes)
      held = noBytes
      heldBytes = 0
      pass(packets)
    }
    if (rest.length > 0) hold(rest)
    return true
  }
}

const noBytes = Buffer.alloc(0)
