/** What a client's certificate says, read once for each connection. TLS has verified it. */
import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { identityOfSubject, nodeOf } from '../../api/identity.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import type { Peer } from './broker.ts'

export type PeerCertificate = {
  readonly user: string | undefined
  /** The node it names. */
  readonly node: string | undefined
  readonly notBeforeMs: number
  readonly peer: Peer
}

export function readPeerCertificate(
  socket: TLSSocket,
  authorityOf: ((certificate: X509Certificate) => string | undefined) | undefined,
): PeerCertificate {
  const address = addressOf(socket)
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return { user: undefined, node: undefined, notBeforeMs: Number.NaN, peer: { address } }
  const identity = identityOfSubject(subjectOf(certificate.subject))
  return {
    user: identity?.user,
    node: identity && nodeOf(identity),
    notBeforeMs: Date.parse(certificate.validFrom),
    peer: {
      address,
      certificate: { until: rfc3339(Date.parse(certificate.validTo)), authority: authorityOf?.(certificate) },
    },
  }
}

/** IPv4 without the prefix that a listener for both kinds of addresses puts before it. */
export function addressOf({ remoteAddress }: { readonly remoteAddress?: string | undefined }): string | undefined {
  return remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '')
}

/**
 * Node.js writes a subject as one line a field, `CN=system:node:pi-1`. It escapes with backslashes what could be taken for
 * another field; no name of ours has one, so a subject with any names nobody.
 */
function subjectOf(subject: string | undefined): { readonly CN?: unknown; readonly O?: unknown } {
  if (subject === undefined || subject.includes('\\') || subject.includes('"')) return {}
  const values = (name: string) =>
    subject.split('\n').flatMap((line) => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []))
  const [common, ...more] = values('CN')
  return { ...(more.length === 0 && { CN: common }), O: values('O') }
}
