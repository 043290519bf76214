/** What a client's certificate says, read once for each connection. TLS has verified it. */
import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { identityOfSubject, nodeOf } from '../../../api/identity.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import type { Peer } from '../broker.ts'

/** The authorities that the fleet trusts now. */
export type FleetAuthorities = {
  /** The hash of the only one; undefined where there are several. */
  readonly only: () => string | undefined
  /** The hash of the one that signed this certificate, whose signature TLS has verified; undefined: none of them. */
  readonly of: (certificate: X509Certificate) => string | undefined
}

export type PeerCertificate = {
  readonly user: string | undefined
  /** The node it names. */
  readonly node: string | undefined
  readonly notBeforeMs: number
  readonly peer: Peer
}

/**
 * Reads it with `getPeerCertificate`: the first `getPeerX509Certificate` of a connection takes three times as long (147 and 53 µs).
 * So the authority is looked up in the certificate only where more than one is trusted.
 */
export function readPeerCertificate(socket: TLSSocket, authorities: FleetAuthorities | undefined): PeerCertificate {
  const address = addressOf(socket)
  const { subject, valid_from, valid_to } = socket.getPeerCertificate()
  if (subject === undefined) return { user: undefined, node: undefined, notBeforeMs: Number.NaN, peer: { address } }
  const identity = identityOfSubject(subject)
  return {
    user: identity?.user,
    node: identity && nodeOf(identity),
    notBeforeMs: Date.parse(valid_from),
    peer: {
      address,
      certificate: { until: rfc3339(Date.parse(valid_to)), authority: authorityOf(socket, authorities) },
    },
  }
}

/** The hash of the authority that signed the certificate of this connection. TLS verified it with those that are trusted now. */
function authorityOf(socket: TLSSocket, authorities: FleetAuthorities | undefined): string | undefined {
  const only = authorities?.only()
  if (only !== undefined) return only
  const certificate = socket.getPeerX509Certificate()
  return certificate && authorities?.of(certificate)
}

/** IPv4 without the prefix that a listener for both kinds of addresses puts before it. */
export function addressOf({ remoteAddress }: { readonly remoteAddress?: string | undefined }): string | undefined {
  return remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '')
}
