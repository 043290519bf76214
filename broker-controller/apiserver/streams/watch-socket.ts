/** A watch over a WebSocket: each event is a message (HandleWS in staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go). */
import { ApiError } from '../../../api/api-error.ts'
import type { OfferedProtocols } from '../handlers/strategy.ts'
import type { ApiResponse, TakenConnection } from '../wire/answers.ts'
import { errorAnswer } from '../wire/status-errors.ts'
import type { ByteChannel } from './byte-channel.ts'
import type { SocketEncoding } from './socket-encoding.ts'
import { acceptWebSocket } from './web-socket.ts'

type Stream = ApiResponse & { readonly kind: 'stream' }

/** Resolves when a reader has taken what was written, or `signal` aborts; disconnects it when it is too slow. */
export type DrainWait = (socket: TakenConnection['socket'], signal: AbortSignal) => Promise<void>

/** Text messages, because events are JSON, whatever the subprotocol is. */
const texts: SocketEncoding = { encode: (message) => Buffer.from(message).toString(), decode: (message) => message }

/**
 * The watch as the answer to a request for a WebSocket, or BadRequest for an invalid name of a subprotocol, and Forbidden for an
 * Origin that is not a URL. The library answers an invalid handshake.
 */
export function watchOverSocket(
  { pieces }: Stream,
  { protocols }: OfferedProtocols,
  origin: string | undefined,
  drained: DrainWait,
): ApiResponse {
  // A browser wants one of its own echoed. kube-apiserver refuses several.
  const [protocol = ''] = protocols
  if (!/^[!#$%&'*+\-./^`|~\w]*$/.test(protocol)) return refusal('BadRequest', 'invalid websocket subprotocol')
  if (origin !== undefined && !URL.canParse(origin)) return refusal('Forbidden', 'invalid origin of the websocket')
  return { kind: 'connection', take: (connection) => sendEvents(connection, protocol, pieces, drained) }
}

function refusal(reason: 'BadRequest' | 'Forbidden', because: string): ApiResponse {
  return errorAnswer(new ApiError(reason, because))
}

/** Resolves when the client or the watch has ended. */
async function sendEvents(
  connection: TakenConnection,
  protocol: string,
  pieces: AsyncIterable<string | Uint8Array>,
  drained: DrainWait,
): Promise<void> {
  const { socket, signal } = connection
  const client = await acceptWebSocket(connection, protocol, texts)
  if (client === undefined) return
  // Nothing is expected of the client; its end aborts the signal, which ends the iteration.
  const ended = readToEnd(client)
  try {
    for await (const piece of pieces) {
      if (signal.aborted) break
      const sent = client.send(typeof piece === 'string' ? Buffer.from(piece) : piece)
      await Promise.all([sent, socket.writableNeedDrain ? drained(socket, signal) : undefined])
    }
    client.close()
  } catch {
    client.destroy() // it is gone, or took nothing
  }
  await ended
}

async function readToEnd(client: ByteChannel): Promise<void> {
  while ((await client.next()) !== undefined);
}
