/** The packets that only a client sends, as MQTT 3.1.1 encodes them (the numbers are its sections). */

export type ConnectContent = {
  readonly clientId: string
  readonly keepAliveSeconds: number
  /** Published with QoS 1 and retained when the connection is lost. */
  readonly will: { readonly topic: string; readonly body: string }
}

/** 3.1: a clean session, and a retained will of QoS 1. */
export function connectPacket({ clientId, keepAliveSeconds, will }: ConnectContent): Buffer {
  const flags = 0b0010_1110
  return packet(
    0x10,
    text('MQTT'),
    Buffer.from([4, flags, keepAliveSeconds >> 8, keepAliveSeconds & 255]),
    ...[clientId, will.topic, will.body].map(text),
  )
}

/** 3.8: each filter with QoS 1. */
export function subscribePacket(messageId: number, filters: readonly string[]): Buffer {
  return packet(0x82, number(messageId), ...filters.flatMap((filter) => [text(filter), Buffer.from([1])]))
}

/** 3.12. */
export const pingreqPacket = Buffer.from([0xc0, 0])

/** 3.14. */
export const disconnectPacket = Buffer.from([0xe0, 0])

/** 2.2.3: the length of the body in seven bits a byte, the lowest first. */
function packet(type: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const length: number[] = []
  for (let rest = body.length; ; ) {
    const low = rest % 128
    rest = Math.floor(rest / 128)
    length.push(rest > 0 ? low | 0x80 : low)
    if (rest === 0) break
  }
  return Buffer.concat([Buffer.from([type, ...length]), body])
}

/** 1.5.3. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([number(bytes.length), bytes])
}

function number(value: number): Buffer {
  return Buffer.from([value >> 8, value & 255])
}
