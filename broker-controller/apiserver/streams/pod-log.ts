/** get of pods/log: what a container wrote, and goes on to write. */
import { sessionChannels } from '../../../api/sessions.ts'
import type { SessionFrames } from '../../../daemon/sessions/session-frames.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import { type ApiResponse, type TakenConnection, textAnswer } from '../wire/answers.ts'
import type { ByteChannel } from './byte-channel.ts'
import { containerOfPod, presentPod } from './container-of-pod.ts'
import { logOptions } from './log-options.ts'
import { openNodeSession, sessionStatusIn } from './node-session.ts'
import { acceptUpgrade, type ChosenProtocol, chosenProtocol } from './upgrade.ts'

/** Throws the ApiError of a refusal: by the options, or by the node. */
export async function podLog(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const pod = await presentPod(request, needs)
  const options = logOptions(request.query, request.route.name)
  const container = containerOfPod(pod, options.container)
  // As kube-apiserver: a pod without a node has written nothing.
  if (!pod.spec.nodeName) return textAnswer('', 204)
  const protocol = isWebSocket(request) ? chosenProtocol(request.offered, served) : undefined
  const frames = await openNodeSession(pod, { logs: { ...options, container } }, request, needs)
  if (protocol !== undefined) return { kind: 'connection', take: (one) => sendMessages(one, protocol, frames) }
  return { kind: 'flow', contentType: 'text/plain', pieces: outputIn(frames) }
}

/** The subprotocols of kube-apiserver's logs (k8s.io/apimachinery/pkg/util/httpstream/wsstream/stream.go). */
const served = { websocket: ['', 'binary.k8s.io', 'base64.binary.k8s.io'], 'spdy/3.1': [] }

function isWebSocket({ offered }: ResourceRequest): boolean {
  return offered?.upgrade === 'websocket'
}

/** An empty message first, as kube-apiserver sends it; then one for each piece. Resolves when the client or the log has ended. */
async function sendMessages(
  connection: TakenConnection,
  protocol: ChosenProtocol,
  frames: SessionFrames,
): Promise<void> {
  const client = await acceptUpgrade(connection, protocol)
  if (client === undefined) return frames.destroy()
  // Nothing is expected of the client; its end ends the log.
  const ended = untilGone(client).finally(() => frames.destroy())
  try {
    await client.send(Buffer.alloc(0))
    for await (const piece of outputIn(frames)) await client.send(piece)
    // Closing gives the client a limited time for what is left.
    await client.flushed()
    client.close()
  } catch {
    // The client is gone, or the node: a close frame would mean that this is the whole log.
    client.destroy()
  }
  await ended
}

async function untilGone(client: ByteChannel): Promise<void> {
  while ((await client.next()) !== undefined);
}

/** Rejects where the node's stream ends early: the client must not take what it got for all there is. */
async function* outputIn(frames: SessionFrames): AsyncGenerator<Uint8Array> {
  try {
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      const { channel, payload } = frame
      if (channel === sessionChannels.output) yield payload
      if (channel !== sessionChannels.status) continue
      const { state, message } = sessionStatusIn(payload) ?? {}
      if (state !== 'ended') throw new Error('The node ended its log without a status')
      if (message !== undefined) throw new Error(`The node could not read the log to its end: ${message}`)
      return
    }
    throw new Error('The stream of the node ended early')
  } finally {
    frames.destroy()
  }
}
