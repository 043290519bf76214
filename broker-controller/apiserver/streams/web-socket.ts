/** A client's WebSocket, message by message. */
import type { IncomingMessage } from 'node:http'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import type { TakenConnection } from '../wire/answers.ts'
import { type ByteChannel, pingEach, sendWindow } from './byte-channel.ts'
import { type SocketEncoding, socketEncoding } from './socket-encoding.ts'

/** kubectl sends 32 KiB at a time. */
const longestMessage = 1024 * 1024
const server = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  maxPayload: longestMessage,
  clientTracking: false,
})

/** The library reads no names with a slash, as that of kubectl's port-forward: the header is written here. */
const protocols = new WeakMap<IncomingMessage, string>()
server.on('headers', (headers, incoming) => {
  const protocol = protocols.get(incoming)
  if (protocol !== undefined) headers.push(`Sec-WebSocket-Protocol: ${protocol}`)
})

/** Answers the handshake with this subprotocol, which the client has offered; '': it has offered none. undefined: the handshake was not valid, and is answered. */
export async function acceptWebSocket(
  { incoming, socket, head }: TakenConnection,
  protocol: string,
  encoding = socketEncoding(protocol),
): Promise<ByteChannel | undefined> {
  delete incoming.headers['sec-websocket-protocol']
  if (protocol !== '') protocols.set(incoming, protocol)
  const accepted = await new Promise<WebSocket | undefined>((resolve) => {
    socket.once('close', () => resolve(undefined))
    server.handleUpgrade(incoming, socket, head, resolve)
  })
  return accepted && clientSocket(accepted, encoding)
}

function clientSocket(socket: WebSocket, { encode, decode }: SocketEncoding): ByteChannel {
  const messages: Buffer[] = []
  let isGone = false
  const closed = new AbortController()
  let wake: () => void = () => undefined
  const { send, flushed } = sendWindow(() => (socket.readyState === socket.OPEN ? socket.bufferedAmount : undefined))
  const stopPings = pingEach(
    () => messages.length > 0,
    () => {
      // Where the client reads nothing, pings would only pile up.
      if (socket.readyState === socket.OPEN && socket.bufferedAmount === 0) socket.ping()
    },
  )
  socket.on('message', (data: RawData) => {
    messages.push(decode(bytesOf(data)))
    socket.pause()
    wake()
  })
  socket.on('error', () => socket.terminate()) // too long, or against the protocol
  socket.on('close', () => {
    stopPings()
    isGone = true
    wake()
    closed.abort('closed')
  })
  return {
    async next() {
      while (messages.length === 0 && !isGone) {
        socket.resume()
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return messages.shift()
    },
    async send(message) {
      const encoded = encode(message)
      await send((done) => socket.send(encoded, { binary: typeof encoded !== 'string' }, done))
    },
    flushed,
    closed: closed.signal,
    close() {
      socket.resume() // the client's answer must be read
      socket.close(1000)
    },
    destroy: () => socket.terminate(),
  }
}

function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
