/** Certificate revocation lists: RFC 5280, section 5. */
import { X509Certificate } from 'node:crypto'
import type { Authority } from './authority.ts'
import { decodeDer, derInteger, encode, instant, itemsOf, sequence, tagged, toPem } from './der.ts'
import { algorithm, authorityKeyIdentifier, extension, oids, signed } from './x509.ts'

export type RevokedCertificate = {
  /** As `X509Certificate.serialNumber`: hexadecimal. */
  readonly serial: string
  readonly revokedMs: number
}

export type RevocationListContent = {
  /** In any order. */
  readonly revoked: readonly RevokedCertificate[]
  readonly nowMs: number
}

/**
 * The list, PEM, of certificates that this authority issued and revoked. It is valid as long as the authority: a server that has
 * only an old list must not refuse all clients. Of two lists the later one counts, by `nowMs` in whole seconds.
 */
export function revocationList(
  authority: Pick<Authority, 'certificate' | 'key' | 'notAfterMs'>,
  { revoked, nowMs }: RevocationListContent,
): string {
  const issuer = new X509Certificate(authority.certificate)
  const body = sequence(
    derInteger(Uint8Array.of(1)), // version 2
    algorithm,
    subjectOf(issuer),
    instant(nowMs),
    instant(authority.notAfterMs),
    // 5.1.2.6: left out where it would be empty.
    ...(revoked.length === 0
      ? []
      : [
          sequence(
            ...revoked.map(({ serial, revokedMs }) =>
              sequence(derInteger(Buffer.from(evenDigits(serial), 'hex')), instant(revokedMs)),
            ),
          ),
        ]),
    tagged(
      0,
      sequence(
        authorityKeyIdentifier(authority.key),
        extension(oids.crlNumber, derInteger(Buffer.from(evenDigits(Math.floor(nowMs / 1000).toString(16)), 'hex'))),
      ),
    ),
  )
  return toPem('X509 CRL', encode(signed(body, authority.key)))
}

function evenDigits(hex: string): string {
  return hex.length % 2 === 0 ? hex : `0${hex}`
}

/** Byte for byte, because verifiers compare the encoded names. */
function subjectOf(certificate: X509Certificate) {
  const body = itemsOf(itemsOf(decodeDer(certificate.raw), 'sequence')?.[0], 'sequence')
  const subject = body?.[5] // version, serial, algorithm, issuer, validity, subject
  if (subject === undefined) throw new TypeError('A certificate without a subject')
  return subject
}
