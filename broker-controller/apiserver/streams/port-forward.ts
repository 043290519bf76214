/**
 * pods/portforward: connections to ports of a pod. kubectl uses SPDY, in a WebSocket or by itself, and opens two streams for each
 * connection, one for its data and one for its error (k8s.io/kubelet/pkg/cri/streaming/portforward/httpstream.go). Other clients
 * use the channels of a WebSocket.
 */
import type { Pod } from '../../../api/pod.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import type { ApiResponse } from '../wire/answers.ts'
import type { ByteChannel } from './byte-channel.ts'
import { assertAssigned, presentPod } from './container-of-pod.ts'
import { forwardChannels, forwardedPorts } from './port-channels.ts'
import { forwardPodPort, type PortStreams } from './port-connection.ts'
import { type SpdyStream, spdyConnection } from './spdy-connection.ts'
import { acceptUpgrade, chosenProtocol } from './upgrade.ts'

const tunnel = 'SPDY/3.1+portforward.k8s.io'
const served = {
  websocket: [tunnel, 'v4.channel.k8s.io', ''],
  'spdy/3.1': ['portforward.k8s.io'],
}

/** Throws the ApiError of a refusal, before the connection leaves HTTP. */
export async function forwardPorts(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const pod = await presentPod(request, needs)
  assertAssigned(pod)
  const protocol = chosenProtocol(request.offered, served)
  const isSpdy = protocol.upgrade === 'spdy/3.1' || protocol.protocol === tunnel
  const ports = isSpdy ? [] : forwardedPorts(request.query)
  return {
    kind: 'connection',
    async take(connection) {
      const client = await acceptUpgrade(connection, protocol)
      if (client === undefined) return
      const { signal } = connection
      const own = { identity: request.identity, signal }
      await (isSpdy ? serve(client, pod, own, needs) : forwardChannels(client, ports, pod, own, needs))
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
  request: Pick<ResourceRequest, 'identity' | 'signal'>,
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
    else void forwardPodPort(streamsOf(data, error), Number(data.headers.get('port')), pod, request, needs)
  }
}

function streamsOf(data: SpdyStream, error: SpdyStream): PortStreams {
  return {
    signal: data.signal,
    next: () => data.next(),
    send: ({ payload }) => data.send(payload),
    async end() {
      await Promise.all([data.end(), error.end()])
      await data.reset()
    },
    async fail(message) {
      if (message !== undefined) await error.send(Buffer.from(message))
      await Promise.all([error.end(), data.reset()])
    },
  }
}
