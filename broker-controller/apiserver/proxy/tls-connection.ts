/** TLS on a connection that a node passes on. */
import type { Duplex } from 'node:stream'
import { connect, type SecureContext } from 'node:tls'
import { withDeadline } from '../../../daemon/deadline.ts'

/** How the server proves who it is. */
export type ServerTrust = {
  readonly rejectUnauthorized: boolean
  readonly servername?: string
  /** With the authorities of the server, and the certificate that is shown to it. */
  readonly secureContext?: SecureContext
}

const handshakeMs = 10_000

/** Rejects where the server does not prove itself in time. */
export function encryptedConnection(connection: Duplex, trust: ServerTrust): Promise<Duplex> {
  return withDeadline(
    handshakeMs,
    undefined,
    () =>
      new Promise<Duplex>((resolve, reject) => {
        const socket = connect({ socket: connection, ...trust })
        socket.once('close', () => connection.destroy())
        const closed = () => void socket.destroy(new Error('the connection was closed'))
        connection.once('close', closed)
        socket.once('error', reject)
        socket.once('secureConnect', () => {
          connection.off('close', closed)
          socket.off('error', reject).on('error', () => undefined)
          resolve(socket)
        })
      }),
    'TLS handshake not done',
  )
}
