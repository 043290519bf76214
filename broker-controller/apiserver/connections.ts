/** The connections of the API: what certificate each shows, and which are cut off when one is revoked. */
import type { Server } from 'node:https'
import { TLSSocket } from 'node:tls'
import { identityOfSubject } from '../../api/identity.ts'
import type { Log } from '../../daemon/log.ts'
import type { RevocationList } from '../store/revocations.ts'
import type { ClientCertificate } from './authentication.ts'

export type ConnectionNeeds = {
  readonly revocations: RevocationList | undefined
  /** Is this certificate (DER) of our authority and for clients, whatever its dates? */
  readonly isOurs: (der: Uint8Array) => boolean
  readonly log: Log
}

export interface Connections {
  /** What the client showed when the connection was made; undefined when it showed nothing. */
  certificateOf(socket: unknown): ClientCertificate | undefined
}

export function connectionsOf(server: Server, { revocations, isOurs, log }: ConnectionNeeds): Connections {
  /** Read once per connection: it is the same for all its requests. */
  const shown = new Map<TLSSocket, ClientCertificate | undefined>()
  server.on('secureConnection', (socket) => {
    shown.set(socket, read(socket, isOurs))
    socket.once('close', () => shown.delete(socket))
  })
  // Requests are judged one by one; a watch that runs on would go on reading.
  revocations?.onChange(() => {
    for (const [socket, certificate] of shown) {
      const { identity, validSinceMs = Number.NaN } = certificate ?? {}
      const because = identity && revocations.because(identity.user, validSinceMs)
      if (because === undefined) continue
      log.info('API connection cut', { user: identity?.user, because })
      socket.destroy()
    }
  })
  return { certificateOf: (socket) => (socket instanceof TLSSocket ? shown.get(socket) : undefined) }
}

function read(socket: TLSSocket, isOurs: (der: Uint8Array) => boolean): ClientCertificate | undefined {
  const { subject, raw, valid_from, valid_to } = socket.getPeerCertificate()
  // Without a certificate Node.js gives an empty object, whatever its types say.
  if (subject === undefined) return undefined
  const isOver = !socket.authorized && String(socket.authorizationError) === 'CERT_HAS_EXPIRED'
  return {
    trusted: socket.authorized,
    lapsed: isOver && isOurs(raw),
    identity: identityOfSubject(subject),
    validSinceMs: Date.parse(valid_from),
    validUntilMs: Date.parse(valid_to),
  }
}
