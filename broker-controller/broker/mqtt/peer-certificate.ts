/** The identity in a client's certificate, read once for each connection. TLS has verified it. */
import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { identityOfSubject, nodeOf } from '../../../api/identity.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import type { Peer } from '../broker.ts'

/** The authorities that the fleet trusts now. */
export type FleetAuthorities = {
  /** The hash of the only authority; undefined: there are several. */
  readonly only: () => string | undefined
  /** The hash of the authority that signed this certificate, which TLS has verified; undefined: none of them. */
  readonly of: (certificate: X509Certificate) => string | undefined
}

export type PeerCertificate = {
  readonly user: string | undefined
  /** The node that it identifies; undefined: its subject is not a node's. */
  readonly node: string | undefined
  readonly notBeforeMs: number
  readonly peer: Peer
}

/**
 * Reads it with `getPeerCertificate`: the first `getPeerX509Certificate` of a connection takes three times as long (147 and 53 µs).
 * So the authority is read from the certificate only if more than one is trusted.
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

/** The hash of the authority that signed the certificate of this connection. TLS verified it with the authorities that are trusted now. */
function authorityOf(socket: TLSSocket, authorities: FleetAuthorities | undefined): string | undefined {
  const only = authorities?.only()
  if (only !== undefined) return only
  const certificate = socket.getPeerX509Certificate()
  return certificate && authorities?.of(certificate)
}

/** The address of the client; IPv4 without the prefix `::ffff:` of a dual-stack listener. */
export function addressOf({ remoteAddress }: { readonly remoteAddress?: string | undefined }): string | undefined {
  return remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '')
}
