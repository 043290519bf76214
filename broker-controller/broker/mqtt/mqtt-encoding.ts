/** The packets that the broker sends, as MQTT 3.1.1 encodes them (the numbers are its sections). */

export type OutgoingPublish = {
  readonly topic: string
  readonly body: string
  readonly qos: 0 | 1
  readonly retain: boolean
  /** 1 to 65535; counts for QoS 1. */
  readonly messageId: number
}

/** 3.2.2.3; the last is not in the standard, for a keep alive that is missing or too long: agents then request the usual one. */
export const connackCode = { accepted: 0, badProtocolVersion: 1, notAuthorized: 5, keepAliveRefused: 6 } as const
export type ConnackCode = (typeof connackCode)[keyof typeof connackCode]

/** 3.2: never with a session present, because none is kept. */
export function connackPacket(returnCode: number): Buffer {
  return Buffer.from([0x20, 2, 0, returnCode])
}

/** 3.4. */
export function pubackPacket(messageId: number): Buffer {
  return Buffer.from([0x40, 2, messageId >> 8, messageId & 255])
}

/** 3.9; 128: refused. */
export function subackPacket(messageId: number, granted: readonly number[]): Buffer {
  return withHeader(0x90, Buffer.from([messageId >> 8, messageId & 255, ...granted]))
}

/** 3.11. */
export function unsubackPacket(messageId: number): Buffer {
  return Buffer.from([0xb0, 2, messageId >> 8, messageId & 255])
}

/** 3.13. */
export const pingrespPacket = Buffer.from([0xd0, 0])

/** 3.3. */
export function publishPacket({ topic, body, qos, retain, messageId }: OutgoingPublish): Buffer {
  const topicBytes = Buffer.byteLength(topic)
  const idBytes = qos === 0 ? 0 : 2
  const length = 2 + topicBytes + idBytes + Buffer.byteLength(body)
  const headerBytes = 1 + lengthBytes(length)
  const packet = Buffer.allocUnsafe(headerBytes + length)
  packet[0] = 0x30 | (qos << 1) | (retain ? 1 : 0)
  let at = writeLength(packet, length)
  at = packet.writeUInt16BE(topicBytes, at)
  at += packet.write(topic, at)
  if (qos === 1) at = packet.writeUInt16BE(messageId, at)
  packet.write(body, at)
  return packet
}

function withHeader(type: number, body: Buffer): Buffer {
  const header = Buffer.alloc(1 + lengthBytes(body.length))
  header[0] = type
  writeLength(header, body.length)
  return Buffer.concat([header, body])
}

/** 2.2.3: seven bits a byte, the lowest first. */
function lengthBytes(length: number): number {
  return length < 128 ? 1 : length < 16_384 ? 2 : length < 2_097_152 ? 3 : 4
}

/** Returns the offset of the body. */
function writeLength(packet: Buffer, length: number): number {
  let at = 1
  for (let rest = length; ; at++) {
    const low = rest % 128
    rest = Math.floor(rest / 128)
    packet[at] = rest > 0 ? low | 0x80 : low
    if (rest === 0) return at + 1
  }
}
