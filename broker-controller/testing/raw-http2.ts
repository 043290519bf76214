/** A client of HTTP/2 that sends what it likes, frame by frame (RFC 9113, 4.1; RFC 7541). For tests. */
import { EventEmitter, once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'

export const frameTypes = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
}
export const endStream = 1
export const endHeaders = 4
const ack = 1

export type Frame = {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export type RawHttp2 = {
  readonly socket: TLSSocket
  /** Resolves when the system has taken them, or the connection is closed. */
  send(...frames: readonly Buffer[]): Promise<void>
  /** All that came, except for acknowledgements. */
  readonly frames: readonly Frame[]
  /** Resolves when `isReached` is true of the frames. Rejects when the connection is closed before. */
  until(isReached: (frames: readonly Frame[]) => boolean): Promise<void>
  readonly closed: Promise<void>
}

export type RawHttp2Options = {
  /** Default: 127.0.0.1. */
  readonly host?: string
  readonly port: number
  readonly ca: string
  readonly cert?: string
  readonly key?: string
  /** Names and values of SETTINGS. */
  readonly settings?: readonly (readonly [id: number, value: number])[]
  /** What is sent in the place of the preface. */
  readonly preface?: string
}

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

export async function rawHttp2({ settings = [], ...options }: RawHttp2Options): Promise<RawHttp2> {
  const socket = connect({ host: '127.0.0.1', ALPNProtocols: ['h2'], ...options })
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, 'secureConnect')
  const frames: Frame[] = []
  const cameFrames = new EventEmitter().setMaxListeners(0)
  let rest = Buffer.alloc(0)
  socket.on('data', (piece: Buffer) => {
    rest = Buffer.concat([rest, piece])
    for (
      let length = rest.readUIntBE(0, 3);
      rest.length >= 9 + length;
      length = rest.length < 9 ? 1e9 : rest.readUIntBE(0, 3)
    ) {
      const [type = 0, flags = 0] = rest.subarray(3, 5)
      const payload = rest.subarray(9, 9 + length)
      if (flags !== ack || type === frameTypes.data) frames.push({ type, flags, stream: rest.readUInt32BE(5), payload })
      rest = rest.subarray(9 + length)
      if (rest.length < 9) break
    }
    cameFrames.emit('more')
  })
  const until = (isReached: (frames: readonly Frame[]) => boolean) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!isReached(frames)) return
        cameFrames.off('more', look)
        resolve()
      }
      cameFrames.on('more', look)
      look()
      void closed.then(() => reject(new Error('The connection was closed before')))
    })
  const send = (...parts: readonly Buffer[]) =>
    new Promise<void>((resolve) => {
      if (socket.destroyed) return resolve()
      if (socket.write(Buffer.concat(parts))) return resolve()
      const done = () => {
        socket.off('drain', done).off('close', done)
        resolve()
      }
      socket.on('drain', done).on('close', done)
    })
  socket.write(options.preface ?? preface)
  const list = settings.map(([id, value]) => {
    const one = Buffer.alloc(6)
    one.writeUInt16BE(id)
    one.writeUInt32BE(value, 2)
    return one
  })
  await send(frame(frameTypes.settings, 0, 0, Buffer.concat(list)))
  return { socket, send, frames, until, closed }
}

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A header block with the pseudo headers of a GET, or a POST. */
export function requestBlock(path: string, isPost = false): Buffer {
  return Buffer.concat([Buffer.of(isPost ? 0x83 : 0x82, 0x87, 0x04), text(path), Buffer.of(0x01), text('localhost')])
}

/** A header that goes into the table of the other end. */
export function indexed(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0x40), text(name), text(value)])
}

/** The header that went into the table last. */
export const lastIndexed = 0xbe

/** Without Huffman coding, with its length as an integer of seven bits. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes])
  const length: number[] = [127]
  let left = bytes.length - 127
  for (; left >= 128; left = Math.floor(left / 128)) length.push((left % 128) + 128)
  return Buffer.concat([Buffer.of(...length, left), bytes])
}
