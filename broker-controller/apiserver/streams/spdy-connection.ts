/**
 * The server's end of SPDY/3.1, as far as clients of Kubernetes use it: streams that the client opens, and their data
 * (draft-mbelshe-httpbis-spdy-00; github.com/moby/spdystream). There is no flow control for single streams: client-go has
 * none either. Data that is not taken stops the connection, and so the client.
 */
import { type ByteChannel, pingEach } from './byte-channel.ts'
import { type Mailbox, mailbox } from './mailbox.ts'
import { type HeaderWriter, headerReader, headerWriter } from './spdy-headers.ts'

export interface SpdyStream {
  readonly headers: ReadonlyMap<string, string>
  /** Aborts when the stream is reset, by either side, and when the client is gone. */
  readonly signal: AbortSignal
  /** The next data; undefined: the client has ended or reset the stream, or is gone. */
  next(): Promise<Buffer | undefined>
  /** Rejects where the client is gone or has reset the stream. */
  send(data: Uint8Array): Promise<void>
  /** Ends this side of it. */
  end(): Promise<void>
  /** Ends it at once; what comes on it is dropped. */
  reset(): Promise<void>
}

export interface SpdyConnection {
  /** The next stream that the client opens; undefined: it is gone. */
  accept(): Promise<SpdyStream | undefined>
  /** Sends what waits, and ends the connection. */
  close(): void
  destroy(): void
}

const types = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, headers: 8 } as const
const finFlag = 1
const refusedStream = 3
const cancel = 5
const longestControl = 32 * 1024
/** Two for each connection through a port-forward. */
const mostStreams = 256
const mostData = 64 * 1024

type Open = {
  readonly data: Mailbox<Buffer>
  readonly stop: AbortController
  isReset: boolean
  /** By this side. */
  isEnded: boolean
  /** By the client. */
  isFinished: boolean
}

/** Serves the connection until either side closes it. */
export function spdyConnection(channel: ByteChannel): SpdyConnection {
  const [reader, writer] = [headerReader(), headerWriter()]
  const { take, takeSome } = bytesOf(channel)
  const write = inOrder(channel, writer)
  const streams = openStreams(write)

  const control = async (type: number, flags: number, payload: Buffer) => {
    if (type === types.ping) {
      const id = numberIn(payload, 0)
      // The ids of a client are odd: others are in answer to ours (2.6.5).
      if (id % 2 === 1) await write.control(types.ping, [id])
      return
    }
    if (type === types.headers) return void (await reader.read(payload.subarray(4)))
    if (type === types.synStream) {
      return streams.open(numberIn(payload, 0) & 0x7fffffff, flags, await reader.read(payload.subarray(10)))
    }
    // Settings, window updates and the rest change nothing here.
    if (type === types.rstStream) streams.reset(numberIn(payload, 0) & 0x7fffffff)
  }

  const frame = async (head: Buffer) => {
    const [first, flags, length] = [head.readUInt32BE(0), head.readUInt8(4), head.readUIntBE(5, 3)]
    if (first >= 0x80000000) {
      if (length > longestControl) throw new Error(`A control frame of ${length} bytes is too long`)
      return control(first & 0xffff, flags, await take(length))
    }
    const stream = streams.get(first)
    for (let left = length; left > 0; ) {
      const piece = await takeSome(left)
      left -= piece.length
      if (stream === undefined) continue
      isHeld = true
      await stream.data.put(piece)
      isHeld = false
    }
    if (stream !== undefined && (flags & finFlag) !== 0) streams.finish(first, stream)
  }

  let isHeld = false
  const stopPings = pingClient(channel, write, () => isHeld)
  const end = () => {
    stopPings()
    streams.close()
    reader.close()
    writer.close()
    channel.destroy()
  }
  // Data that is not taken holds the reader: it would not see the end.
  channel.closed.addEventListener('abort', end, { once: true })

  const run = async () => {
    try {
      for (;;) await frame(await take(8))
    } catch {
      // The client is gone, or does not send SPDY.
    } finally {
      channel.closed.removeEventListener('abort', end)
      end()
    }
  }
  if (channel.closed.aborted) end()
  else void run()

  return { accept: streams.accept, close: channel.close, destroy: channel.destroy }
}

type FrameWriter = ReturnType<typeof inOrder>

/** The streams that are open, by their ids. */
function openStreams(write: FrameWriter) {
  const streams = new Map<number, Open>()
  const accepted = mailbox<SpdyStream>()
  const forget = (id: number, stream: Open) => {
    if ((stream.isEnded && stream.isFinished) || stream.isReset) streams.delete(id)
  }
  const finish = (id: number, stream: Open) => {
    stream.isFinished = true
    stream.data.close()
    forget(id, stream)
  }
  const reset = (id: number, stream: Open) => {
    stream.isReset = true
    finish(id, stream)
    stream.stop.abort()
  }
  const handlerOf = (id: number, stream: Open, headers: SpdyStream['headers']): SpdyStream => ({
    headers,
    signal: stream.stop.signal,
    next: () => stream.data.take(),
    async send(data) {
      for (let at = 0; at < data.length; at += mostData) {
        if (stream.isReset || stream.isEnded) throw new Error('The stream is closed')
        await write.data(id, 0, data.subarray(at, at + mostData))
      }
    },
    async end() {
      if (stream.isReset || stream.isEnded) return
      stream.isEnded = true
      forget(id, stream)
      await write.data(id, finFlag, Buffer.alloc(0))
    },
    async reset() {
      if (stream.isReset) return
      reset(id, stream)
      await write.control(types.rstStream, [id, cancel])
    },
  })
  return {
    accept: accepted.take,
    get: (id: number) => streams.get(id),
    finish,
    /** By the client. */
    reset(id: number) {
      const stream = streams.get(id)
      if (stream !== undefined) reset(id, stream)
    },
    async open(id: number, flags: number, headers: SpdyStream['headers']) {
      if (streams.size >= mostStreams || streams.has(id)) return write.control(types.rstStream, [id, refusedStream])
      const stop = new AbortController()
      const stream: Open = { data: mailbox<Buffer>(), stop, isReset: false, isEnded: false, isFinished: false }
      streams.set(id, stream)
      await write.reply(id)
      if ((flags & finFlag) !== 0) finish(id, stream)
      await accepted.put(handlerOf(id, stream, headers))
    },
    /** Resets all of them; others are refused. */
    close() {
      for (const [id, stream] of streams) reset(id, stream)
      accepted.close()
    },
  }
}

/** Returns how to stop. */
function pingClient(channel: ByteChannel, write: FrameWriter, isHeld: () => boolean): () => void {
  let isPinging = false
  let pinged = 0
  return pingEach(isHeld, () => {
    if (isPinging) return // the client reads nothing
    isPinging = true
    pinged = (pinged + 2) % 0x80000000
    write.control(types.ping, [pinged]).then(
      () => {
        isPinging = false
      },
      () => channel.destroy(),
    )
  })
}

/** Throws where the frame is shorter. */
function numberIn(payload: Buffer, at: number): number {
  return payload.readUInt32BE(at)
}

/** Whole frames, one after the other. */
function inOrder(channel: ByteChannel, writer: HeaderWriter) {
  let last: Promise<void> = Promise.resolve()
  const write = (frame: () => Uint8Array | Promise<Uint8Array>): Promise<void> => {
    const next = last.then(async () => channel.send(await frame()))
    last = next.catch(() => undefined)
    return next
  }
  return {
    data: (id: number, flags: number, data: Uint8Array) => {
      const head = Buffer.alloc(8)
      head.writeUInt32BE(id)
      head.writeUInt32BE(flags * 0x1000000 + data.length, 4)
      return write(() => Buffer.concat([head, data]))
    },
    control: (type: number, numbers: readonly number[]) => write(() => controlFrame(type, numbers)),
    /** Compressed in the order in which it is sent. */
    reply: (id: number) => write(async () => controlFrame(types.synReply, [id], await writer.write(new Map()))),
  }
}

function controlFrame(type: number, numbers: readonly number[], block: Buffer = Buffer.alloc(0)): Buffer {
  const frame = Buffer.alloc(8 + 4 * numbers.length)
  frame.writeUInt32BE(0x80030000 + type)
  frame.writeUInt32BE(4 * numbers.length + block.length, 4)
  for (const [i, number] of numbers.entries()) frame.writeUInt32BE(number, 8 + 4 * i)
  return Buffer.concat([frame, block])
}

/** Both reject at the end of the channel. */
function bytesOf(channel: ByteChannel) {
  let held: Buffer = Buffer.alloc(0)
  const more = async () => {
    const piece = await channel.next()
    if (piece === undefined) throw new Error('The connection has ended')
    held = held.length === 0 ? piece : Buffer.concat([held, piece])
  }
  const cut = (bytes: number) => {
    const taken = held.subarray(0, bytes)
    held = held.subarray(bytes)
    return taken
  }
  return {
    async take(bytes: number) {
      while (held.length < bytes) await more()
      return cut(bytes)
    },
    async takeSome(most: number) {
      while (held.length === 0) await more()
      return cut(most)
    },
  }
}
