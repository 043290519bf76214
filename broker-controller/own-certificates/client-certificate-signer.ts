/** Signs the certificates of people and programs with the authority of the fleet. */
import { type Authority, wrongDate } from '../../certs/authority.ts'
import { issueClient } from '../../certs/client-csr.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { ClientCertificateSigner } from '../controllers/certificates/client-certificates.ts'

export type ClientCertificateSignerNeeds = {
  readonly authority: () => Authority
  /** The longest life of a certificate. */
  readonly signingMs: number
  readonly clock: Clock
}

/** Throws while the clock is wrong. */
export function clientCertificateSigner(needs: ClientCertificateSignerNeeds): ClientCertificateSigner {
  const { authority, signingMs, clock } = needs
  return (request, { expirationSeconds = Number.POSITIVE_INFINITY, ...terms }) => {
    const nowMs = clock.wallMs()
    const wrong = wrongDate(nowMs, authority())
    if (wrong !== undefined) throw new Error(wrong)
    const seconds = Math.min(expirationSeconds, signingMs / 1000)
    return issueClient(authority(), request, { nowMs, ...terms, expirationSeconds: seconds })
  }
}
