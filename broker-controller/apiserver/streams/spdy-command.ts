/** exec and attach over SPDY, as the messages of a WebSocket: a byte for the channel, then its data (remotecommand/v4.go). */
import { sessionChannels as channels } from '../../../api/sessions.ts'
import { within, withinOr } from '../../../daemon/deadline.ts'
import type { ByteChannel } from './byte-channel.ts'
import { mailbox } from './mailbox.ts'
import { type SpdyStream, spdyConnection } from './spdy-connection.ts'

export type CommandStreams = {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly tty: boolean
}

/** As the kubelet (streamCreationTimeout). */
const creationMs = 30_000
/** For what waits to be sent, and then for the client to close: as the library of WebSockets. */
const closedMs = 30_000

/** Resolves when the client has opened the streams of its options; rejects where it does not. */
export async function spdyCommand(channel: ByteChannel, options: CommandStreams): Promise<ByteChannel> {
  const connection = spdyConnection(channel)
  const streams = new Map<number, SpdyStream>()
  const expected = expectedStreams(options)
  const opened = async () => {
    while (streams.size < expected.length) {
      const stream = await connection.accept()
      if (stream === undefined) throw new Error('The client is gone')
      const number = channelOf(stream)
      if (number === undefined || !expected.includes(number)) await stream.reset()
      else streams.set(number, stream)
    }
  }
  try {
    await within(creationMs, 'The client did not open its streams', opened())
  } catch (error) {
    connection.destroy()
    throw error
  }
  const messages = mailbox<Buffer>()
  const pump = async (number: number, stream: SpdyStream | undefined, end?: Buffer) => {
    if (stream === undefined) return
    for (let data = await stream.next(); data !== undefined; data = await stream.next()) {
      await messages.put(Buffer.concat([Buffer.of(number), data]))
    }
    if (end !== undefined) await messages.put(end)
  }
  const { input, resize, status } = channels
  void pump(input, streams.get(input), Buffer.of(channels.end, input))
  void pump(resize, streams.get(resize))
  // No more streams are expected: waiting for one shows when the client is gone.
  const over = connection.accept().then(() => {
    messages.close()
    connection.destroy()
  })
  return {
    next: messages.take,
    flushed: channel.flushed,
    closed: channel.closed,
    async send(message) {
      await streams.get(message[0] ?? status)?.send(message.subarray(1))
    },
    close() {
      const ended = [...streams.values()].map((stream) => stream.end().catch(() => undefined))
      // A client that reads nothing, or does not close its end, must not keep the connection.
      void withinOr(closedMs, undefined, Promise.all(ended)).then(() => {
        connection.close()
        return withinOr(closedMs, undefined, over).then(connection.destroy)
      })
    },
    destroy: connection.destroy,
  }
}

function expectedStreams({ stdin, stdout, stderr, tty }: CommandStreams): number[] {
  return [
    channels.status,
    ...(stdin ? [channels.input] : []),
    ...(stdout ? [channels.output] : []),
    ...(stderr ? [channels.errorOutput] : []),
    ...(tty ? [channels.resize] : []),
  ]
}

const byType: { readonly [type: string]: number } = {
  error: channels.status,
  stdin: channels.input,
  stdout: channels.output,
  stderr: channels.errorOutput,
  resize: channels.resize,
}

function channelOf({ headers }: SpdyStream): number | undefined {
  const type = headers.get('streamtype') ?? ''
  return Object.hasOwn(byType, type) ? byType[type] : undefined
}
