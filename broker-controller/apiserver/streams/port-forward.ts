/**
 * pods/portforward: connections to ports of a pod, through SPDY in a WebSocket or by itself. The client opens two streams for
 * each connection, one for its data and one for its error (k8s.io/kubelet/pkg/cri/streaming/portforward/httpstream.go). Each
 * connection is a session of its own with the node.
 */
import type { Pod } from '../../../api/pod.ts'
import { sessionChannels as channels } from '../../../api/sessions.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { SessionFrames } from '../../../daemon/sessions/session-frames.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import type { ApiResponse } from '../wire/answers.ts'
import type { ByteChannel } from './byte-channel.ts'
import { assertAssigned, presentPod } from './container-of-pod.ts'
import { openNodeSession, sessionStatusIn } from './node-session.ts'
import { type SpdyStream, spdyConnection } from './spdy-connection.ts'
import { acceptUpgrade, chosenProtocol } from './upgrade.ts'

const served = { websocket: ['SPDY/3.1+portforward.k8s.io'], 'spdy/3.1': ['portforward.k8s.io'] }

/** Throws the ApiError of a refusal, before the connection leaves HTTP. */
export async function forwardPorts(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const pod = await presentPod(request, needs)
  assertAssigned(pod)
  const protocol = chosenProtocol(request.offered, served)
  return {
    kind: 'connection',
    async take(connection) {
      const client = await acceptUpgrade(connection, protocol)
      if (client !== undefined) await serve(client, pod, { signal: connection.signal }, needs)
    },
  }
}

/** Error streams that wait for their data stream. */
const mostWaiting = 64
/** As the kubelet (streamCreationTimeout). */
const pairedWithinMs = 30_000

/** Until the client is gone. */
async function serve(
  client: ByteChannel,
  pod: Pod,
  request: Pick<ResourceRequest, 'signal'>,
  needs: ResourceNeeds,
): Promise<void> {
  const connection = spdyConnection(client)
  const waiting = new Map<string, SpdyStream>()
  const resetUnpaired = async (id: string, stream: SpdyStream) => {
    await needs.clock.sleep(pairedWithinMs, stream.signal)
    if (waiting.get(id) !== stream) return
    waiting.delete(id)
    await stream.reset().catch(() => undefined) // the client is gone
  }
  for (let stream = await connection.accept(); stream !== undefined; stream = await connection.accept()) {
    const id = stream.headers.get('requestid') ?? ''
    const other = waiting.get(id)
    if (other === undefined) {
      if (waiting.size >= mostWaiting) await stream.reset()
      else {
        waiting.set(id, stream)
        void resetUnpaired(id, stream)
      }
      continue
    }
    waiting.delete(id)
    const pair = [other, stream]
    const [data, error] = ['data', 'error'].map((type) =>
      pair.find(({ headers }) => headers.get('streamtype') === type),
    )
    if (data === undefined || error === undefined) await Promise.all(pair.map((one) => one.reset()))
    else void forward(data, error, pod, request, needs)
  }
}

/** One connection. Never rejects: what went wrong is sent on the error stream, and kubectl prints it. */
async function forward(
  data: SpdyStream,
  error: SpdyStream,
  pod: Pod,
  request: Pick<ResourceRequest, 'signal'>,
  needs: ResourceNeeds,
): Promise<void> {
  const port = Number(data.headers.get('port'))
  try {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error('the port is not valid')
    const frames = await openNodeSession(pod, { portForward: { port } }, request, needs)
    // The program on the client's side has gone: kubectl resets the stream, and nothing would be read from the node any more.
    data.signal.addEventListener('abort', frames.destroy, { once: true })
    if (data.signal.aborted) frames.destroy()
    const toNode = passToNode(data, frames)
    try {
      await passToClient(frames, data)
    } finally {
      frames.destroy()
    }
    await Promise.all([data.end(), error.end()])
    await data.reset()
    await toNode
  } catch (cause) {
    // The client ended it by itself: that is no error to report.
    if (data.signal.aborted) return void (await error.end().catch(() => undefined))
    const message = `error forwarding port ${port} to pod ${pod.metadata.uid}: ${messageOf(cause)}`
    await error.send(Buffer.from(message)).catch(() => undefined)
    await Promise.all([error.end(), data.reset()]).catch(() => undefined)
  }
}

/** Never rejects: where the node's end is closed, its other direction shows why. */
async function passToNode(data: SpdyStream, frames: SessionFrames): Promise<void> {
  try {
    for (let piece = await data.next(); piece !== undefined; piece = await data.next()) {
      await frames.send(channels.input, piece)
    }
    await frames.send(channels.end, Buffer.of(channels.input))
  } catch {
    // The connection has ended.
  }
}

/** Rejects with what the node reports, or where the client is gone. */
async function passToClient(frames: SessionFrames, data: SpdyStream): Promise<void> {
  for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
    const { channel, payload } = frame
    if (channel === channels.output) await data.send(payload)
    if (channel !== channels.status) continue
    const { message } = sessionStatusIn(payload) ?? {}
    if (message !== undefined) throw new Error(message)
    return
  }
  throw new Error('the connection to the node ended')
}
