/** Two connections as one: what comes on each goes out on the other, no faster than it is taken. */
import type { Duplex } from 'node:stream'
import type { Clock } from '../../../daemon/clock.ts'
import type { TakenConnection } from '../wire/answers.ts'

/**
 * A client whose data is not taken is not read either, so that its end is not seen, and a ping would have to be in the protocol
 * of its server. So both end where the server takes nothing and neither side sends anything for this long.
 */
export const blockedMs = 120_000

/** The server's end, with what it has sent already. */
export type ServerConnection = { readonly socket: Duplex; readonly head: Buffer }

/** Resolves when one end is closed, and with it the other. */
export function joinConnections(
  { socket, head, signal }: TakenConnection,
  server: ServerConnection,
  clock: Clock,
): Promise<void> {
  const backend = server.socket
  if (server.head.length > 0) socket.write(server.head)
  if (head.length > 0) backend.write(head)
  return new Promise((resolve) => {
    const over = new AbortController()
    const close = () => {
      over.abort('closed')
      socket.destroy()
      backend.destroy()
      resolve()
    }
    for (const one of [socket, backend]) one.on('error', close).once('close', close)
    signal.addEventListener('abort', close, { once: true })
    if (signal.aborted) close()
    // As kube-apiserver: where one side ends, both do, after what was sent.
    socket.once('end', () => backend.end(close))
    backend.once('end', () => socket.end(close))
    socket.pipe(backend, { end: false })
    backend.pipe(socket, { end: false })
    void whileItMoves(socket, backend, clock, over.signal).then(close)
  })
}

/** Resolves when the client's data has not moved for `blockedMs`, or `over` aborts. */
async function whileItMoves(client: Duplex, backend: Duplex, clock: Clock, over: AbortSignal): Promise<void> {
  let moves = 0
  const moved = () => void moves++
  for (const one of [client, backend]) one.on('data', moved).on('drain', moved)
  while (!over.aborted) {
    const [before, unsent] = [moves, backend.writableLength]
    await clock.sleep(blockedMs, over)
    if (moves === before && backend.writableNeedDrain && backend.writableLength === unsent) return
  }
}
