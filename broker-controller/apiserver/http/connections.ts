/** The connections of the API: what certificate each shows, and which are cut off when one is revoked. */
import type { Server } from 'node:https'
import { TLSSocket } from 'node:tls'
import { identityOfSubject } from '../../../api/identity.ts'
import type { Log } from '../../../daemon/log.ts'
import type { RevocationList } from '../../store/revocations.ts'
import type { ClientCertificate } from '../authentication/authentication.ts'

export type ConnectionNeeds = {
  readonly revocations: RevocationList | undefined
  /** Whether this certificate (DER) is for clients and was issued by the fleet's authority, whatever its dates. */
  readonly isOurs: (der: Uint8Array) => boolean
  readonly log: Log
}

export interface Connections {
  /** What the client showed when the connection was made; undefined when it showed nothing. */
  certificateOf(socket: unknown): ClientCertificate | undefined
  /** The trusted CAs changed: connections with a certificate of a CA that is no longer trusted are closed. */
  authoritiesChanged(): void
}

export function connectionsOf(server: Server, { revocations, isOurs, log }: ConnectionNeeds): Connections {
  /** Read once per connection: it is the same for all its requests. */
  const shown = new Map<TLSSocket, ClientCertificate | undefined>()
  server.on('secureConnection', (socket) => {
    if (socket.destroyed) return // refused before, and has no certificate any more
    shown.set(socket, read(socket, isOurs))
    socket.once('close', () => shown.delete(socket))
  })
  /** Requests are judged one by one; a watch that runs on would go on reading. */
  const cut = (reasonFor: (certificate: ClientCertificate, socket: TLSSocket) => string | undefined) => {
    for (const [socket, certificate] of shown) {
      if (socket.destroyed) continue // and has no certificate any more
      const because = certificate && reasonFor(certificate, socket)
      if (because === undefined) continue
      log.info('API connection cut', { user: certificate?.identity?.user, because })
      socket.destroy()
    }
  }
  revocations?.onChange(() =>
    cut(({ identity, validSinceMs }) => identity && revocations.because(identity.user, validSinceMs)),
  )
  return {
    certificateOf: (socket) => (socket instanceof TLSSocket ? shown.get(socket) : undefined),
    authoritiesChanged: () =>
      cut(({ trusted, lapsed }, socket) =>
        (trusted || lapsed) && !isOurs(socket.getPeerCertificate().raw) ? authorityGone : undefined,
      ),
  }
}

const authorityGone = 'the authority of its certificate is no longer trusted'

const dateProblems: readonly string[] = ['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']

function read(socket: TLSSocket, isOurs: (der: Uint8Array) => boolean): ClientCertificate | undefined {
  const { subject, raw, serialNumber, fingerprint256, valid_from, valid_to } = socket.getPeerCertificate()
  // Without a certificate Node.js gives an empty object, contrary to its types.
  if (subject === undefined) return undefined
  const isOfAnotherTime = !socket.authorized && dateProblems.includes(String(socket.authorizationError))
  return {
    trusted: socket.authorized,
    lapsed: isOfAnotherTime && isOurs(raw),
    identity: identityOfSubject(subject),
    validSinceMs: Date.parse(valid_from),
    validUntilMs: Date.parse(valid_to),
    serialNumber,
    fingerprint: fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}
