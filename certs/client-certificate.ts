/** Finds the authority of the fleet that issued a client certificate. The caller checks its dates. */
import { X509Certificate } from 'node:crypto'
import { certificatesIn } from '../api/text/pem.ts'
import { caHash } from './ca-hash.ts'

const clientUse = '1.3.6.1.5.5.7.3.2'

/**
 * The hash of the authority, among `trusted` (PEM), that signed this client certificate; undefined when none did. `der` as
 * it came over TLS, where its holder proved to have the key. For certificates that OpenSSL calls expired: of several
 * faults it reports the last one only, so that code alone proves nothing about the signature.
 */
export function signerOf(der: Uint8Array, trusted: string): string | undefined {
  try {
    const certificate = new X509Certificate(der)
    if (certificate.ca || !certificate.keyUsage?.includes(clientUse)) return undefined
    return authoritiesIn(trusted).find(({ one }) => certificate.checkIssued(one) && certificate.verify(one.publicKey))
      ?.hash
  } catch {
    return undefined
  }
}

/**
 * The hash of the authority, among `trusted` (PEM), that this certificate names as its issuer, by name and key identifier;
 * undefined when there is none. For certificates whose signature TLS has verified with these authorities.
 */
export function issuerOf(certificate: X509Certificate, trusted: string): string | undefined {
  return authoritiesIn(trusted).find(({ one }) => certificate.checkIssued(one))?.hash
}

/** The hash of the only authority in `trusted` (PEM); undefined where there are several. */
export function onlyAuthority(trusted: string): string | undefined {
  const [first, ...others] = authoritiesIn(trusted)
  return others.length === 0 ? first?.hash : undefined
}

type Trusted = { readonly one: X509Certificate; readonly hash: string }

/** Parsed once: each connection asks for them. */
let parsed: { readonly trusted: string; readonly authorities: readonly Trusted[] } | undefined

function authoritiesIn(trusted: string): readonly Trusted[] {
  if (parsed?.trusted !== trusted) {
    const blocks = certificatesIn(trusted).map((block) => new X509Certificate(block))
    const authorities = blocks.filter(({ ca }) => ca).map((one) => ({ one, hash: caHash(one) }))
    parsed = { trusted, authorities }
  }
  return parsed.authorities
}
