/** A request that asks for another protocol on its connection: WebSocket, SPDY, or the one of nodes. */
import { setMaxListeners } from 'node:events'
import { type IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../../api/api-error.ts'
import type { OfferedProtocols } from '../handlers/strategy.ts'
import { type HttpExchangeNeeds, httpExchange } from './http-exchange.ts'
import { messagesOf } from './messages.ts'
import { readNoMore } from './stream-reading.ts'

export type UpgradeEvent = { readonly incoming: IncomingMessage; readonly socket: Duplex; readonly head: Buffer }

/**
 * Answers as to any other request. Where the answer takes the connection over, nothing of HTTP is left on it; all others
 * are written as HTTP, and end the connection: Node.js reads no further request after one of these.
 */
export async function httpUpgrade({ incoming, socket, head }: UpgradeEvent, needs: HttpExchangeNeeds): Promise<void> {
  readNoMore(socket)
  // Without a listener an error of the connection would end the program.
  socket.on('error', (error) => needs.log.debug('Upgraded connection failed', { error }))
  if (!(socket instanceof Socket)) return void socket.destroy()
  const outgoing = new ServerResponse(incoming)
  outgoing.shouldKeepAlive = false
  try {
    outgoing.assignSocket(socket)
  } catch (error) {
    // The client did not wait for an answer before it: this one cannot follow it, as Node.js has given up the connection.
    needs.log.debug('Upgrade within another request refused', { error })
    return void socket.destroy()
  }
  // Nothing is read after the answer: a client that does not close its end would keep the connection.
  outgoing.once('finish', () => socket.destroySoon())
  const waiting = heldWhileWaiting(socket, () => outgoing.destroy())
  await httpExchange(messagesOf(incoming, outgoing), needs, {
    request: {
      offered: offeredBy(incoming),
      async readBody() {
        throw new ApiError('BadRequest', 'a request that asks for another protocol has no body')
      },
    },
    async take(answer, gone) {
      const more = waiting.release()
      outgoing.detachSocket(socket)
      setMaxListeners(0, gone.signal) // each connection through a port-forward listens: many are not a leak
      socket.once('close', () => gone.abort('closed'))
      const end = () => void socket.destroy()
      gone.signal.addEventListener('abort', end, { once: true })
      if (gone.signal.aborted || socket.destroyed) return end()
      await answer.take({ incoming, socket, head: Buffer.concat([head, ...more]), signal: gone.signal })
    },
  })
}

/** What a client sends before it has the answer: kubectl waits for it. */
const mostHeldBytes = 64 * 1024

/**
 * The answer may wait for a node. Meanwhile the connection is read, because otherwise its end would not be seen; what comes on
 * it is kept. `left`: called when the client has gone.
 */
function heldWhileWaiting(socket: Socket, left: () => void): { release(): readonly Buffer[] } {
  const pieces: Buffer[] = []
  let bytes = 0
  const keep = (piece: Buffer) => {
    pieces.push(piece)
    bytes += piece.length
    if (bytes >= mostHeldBytes) socket.pause()
  }
  socket.on('data', keep).once('end', left)
  return {
    release() {
      socket.off('data', keep).off('end', left)
      socket.pause()
      return pieces
    },
  }
}

/** Clients name their protocols in one header of two (RFC 6455; k8s.io/apimachinery/pkg/util/httpstream). */
function offeredBy({ headers, headersDistinct }: IncomingMessage): OfferedProtocols {
  const upgrade = (headers.upgrade ?? '').toLowerCase()
  const name = upgrade === 'websocket' ? 'sec-websocket-protocol' : 'x-stream-protocol-version'
  const protocols = (headersDistinct[name] ?? []).flatMap((value) => value.split(',')).map((one) => one.trim())
  return { upgrade, protocols: protocols.filter((one) => one !== '') }
}
