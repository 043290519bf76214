/** How a subprotocol of a WebSocket writes its messages (k8s.io/apimachinery/pkg/util/httpstream/wsstream/conn.go). */

export type SocketEncoding = {
  /** A text becomes a text message: for clients that read no binary ones. */
  encode(message: Uint8Array): Uint8Array | string
  decode(message: Buffer): Buffer
}

const binary: SocketEncoding = { encode: (message) => message, decode: (message) => message }

const base64: SocketEncoding = {
  encode: (message) => Buffer.from(message).toString('base64'),
  decode: (message) => Buffer.from(message.toString('latin1'), 'base64'),
}

/** The channel is a digit before the data. Of no channel is a message that begins otherwise. */
const base64Channels: SocketEncoding = {
  encode: (message) => `${message[0] ?? 0}${Buffer.from(message.subarray(1)).toString('base64')}`,
  decode(message) {
    const digit = message.toString('latin1', 0, 1)
    if (!/^\d$/.test(digit)) return Buffer.alloc(0)
    return Buffer.concat([Buffer.of(Number(digit)), base64.decode(message.subarray(1))])
  },
}

const encodings: { readonly [protocol: string]: SocketEncoding } = {
  'base64.binary.k8s.io': base64,
  'base64.channel.k8s.io': base64Channels,
  'v4.base64.channel.k8s.io': base64Channels,
}

/** Messages as they are, unless the name of the subprotocol contains base64. */
export function socketEncoding(protocol: string): SocketEncoding {
  return encodings[protocol] ?? binary
}
