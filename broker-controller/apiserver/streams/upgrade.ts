/** The handshakes of kubectl's streams: WebSocket or SPDY, and the protocol inside of it. */
import { ApiError } from '../../../api/api-error.ts'
import type { OfferedProtocols } from '../handlers/strategy.ts'
import type { TakenConnection } from '../wire/answers.ts'
import { type ByteChannel, socketChannel } from './byte-channel.ts'
import { acceptWebSocket } from './web-socket.ts'

export type ChosenProtocol = { readonly upgrade: 'websocket' | 'spdy/3.1'; readonly protocol: string }

/**
 * The first that is served of what the client offers; '' is a WebSocket without a subprotocol. Throws BadRequest where there is
 * none.
 */
export function chosenProtocol(
  offered: OfferedProtocols | undefined,
  served: { readonly [U in ChosenProtocol['upgrade']]: readonly string[] },
): ChosenProtocol {
  if (offered === undefined) throw new ApiError('BadRequest', 'Upgrade request required')
  const { upgrade, protocols } = offered
  if (upgrade === 'websocket' || upgrade === 'spdy/3.1') {
    const protocol = (protocols.length === 0 ? [''] : protocols).find((one) => served[upgrade].includes(one))
    if (protocol !== undefined) return { upgrade, protocol }
  }
  const named = Object.entries(served).map(([name, inside]) => [name, inside.filter((one) => one !== '')] as const)
  const known = named.flatMap(([name, inside]) => (inside.length === 0 ? [] : `${name} with ${inside.join(' or ')}`))
  throw new ApiError(
    'BadRequest',
    `unable to upgrade: none of the offered protocols is served, only ${known.join(', ')}`,
  )
}

/** undefined: the client's handshake was not valid, or it is gone. */
export async function acceptUpgrade(
  connection: TakenConnection,
  { upgrade, protocol }: ChosenProtocol,
): Promise<ByteChannel | undefined> {
  if (upgrade === 'websocket') return acceptWebSocket(connection, protocol)
  const { socket, head } = connection
  const lines = ['Connection: Upgrade', 'Upgrade: SPDY/3.1', `X-Stream-Protocol-Version: ${protocol}`]
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
  return socketChannel(socket, head)
}
