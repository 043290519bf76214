/**
 * Port-forwards over the channels of a WebSocket, as the clients for Python and JavaScript make them: the query names the ports, and
 * each port has two channels, for data and for an error (k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go).
 */
import { ApiError } from '../../../api/api-error.ts'
import type { Pod } from '../../../api/pod.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import type { ByteChannel } from './byte-channel.ts'
import { type Mailbox, mailbox } from './mailbox.ts'
import { forwardPodPort, isPort, type PortStreams } from './port-connection.ts'

/** Two channels each, of the 256 that the first byte of a message can name. */
const mostPorts = 128

/** The ports in the query: `?ports=80&ports=81` or `?ports=80,81`. Throws BadRequest. */
export function forwardedPorts(query: URLSearchParams): readonly number[] {
  const written = query.getAll('ports').flatMap((text) => text.split(','))
  if (written.length === 0) throw new ApiError('BadRequest', 'query parameter "ports" is required')
  if (written.length > mostPorts)
    throw new ApiError('BadRequest', `at most ${mostPorts} ports can be forwarded together`)
  return written.map((text) => {
    const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
    if (isPort(port)) return port
    throw new ApiError('BadRequest', `unable to parse ${JSON.stringify(text)} as a port: it must be 1 to 65535`)
  })
}

/** Until the client has ended, or all of the connections. */
export async function forwardChannels(
  client: ByteChannel,
  ports: readonly number[],
  pod: Pod,
  request: Pick<ResourceRequest, 'identity' | 'signal'>,
  needs: Pick<ResourceNeeds, 'sessions' | 'clock'>,
): Promise<void> {
  const stop = new AbortController()
  const inputs = ports.map(() => mailbox<Buffer>())
  const streams = inputs.map((input, index) => channelStreams(client, 2 * index, input, stop.signal))
  const reading = readInputs(client, inputs, stop)
  try {
    for (const [index, port] of ports.entries()) {
      const number = Buffer.alloc(2)
      number.writeUInt16LE(port)
      await client.send(message(2 * index, number))
      await client.send(message(2 * index + 1, number))
    }
    await Promise.all(streams.map((stream, index) => forwardPodPort(stream, ports[index] ?? 0, pod, request, needs)))
    client.close()
  } catch {
    client.destroy() // the client is gone
  } finally {
    stop.abort()
  }
  await reading
}

/** Resolves when the client is gone. One port that takes no data holds up the others, as they share one connection. */
async function readInputs(
  client: ByteChannel,
  inputs: readonly Mailbox<Buffer>[],
  stop: AbortController,
): Promise<void> {
  for (let bytes = await client.next(); bytes !== undefined; bytes = await client.next()) {
    const channel = bytes[0] ?? 0
    const input = channel % 2 === 0 ? inputs[channel / 2] : undefined
    if (bytes.length > 1 && !stop.signal.aborted) await input?.put(bytes.subarray(1))
  }
  stop.abort()
}

function channelStreams(
  client: ByteChannel,
  channel: number,
  input: Mailbox<Buffer>,
  signal: AbortSignal,
): PortStreams {
  signal.addEventListener('abort', () => input.close(), { once: true })
  return {
    signal,
    next: () => input.take(),
    send(frame) {
      frame.message.writeUInt8(channel)
      return client.send(frame.message)
    },
    // What the client still sends has no reader, and is not waited for.
    end: async () => input.close(),
    async fail(text) {
      if (text !== undefined) await client.send(message(channel + 1, Buffer.from(text)))
    },
  }
}

function message(channel: number, payload: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.of(channel), payload])
}
