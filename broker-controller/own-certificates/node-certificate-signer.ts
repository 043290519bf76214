/** Signs the certificates of nodes with the authority of the fleet. */
import { type Authority, wrongDate } from '../../certs/authority.ts'
import { issueNodeClient } from '../../certs/issue.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { CertificateSigner } from '../controllers/certificates/request-answers.ts'
import { storeMark } from '../store/store-mark.ts'

export type NodeCertificateSignerNeeds = {
  readonly authority: () => Authority
  /** Serial numbers carry the mark of this store. */
  readonly storeID: string
  /** The longest life of a certificate. */
  readonly signingMs: number
  readonly clock: Clock
}

/** Throws while the clock is wrong. */
export function nodeCertificateSigner(needs: NodeCertificateSignerNeeds): CertificateSigner {
  const { authority, storeID, signingMs, clock } = needs
  return (request, { expirationSeconds = Number.POSITIVE_INFINITY, isOlder = false, ...terms }) => {
    const nowMs = clock.wallMs()
    const wrong = wrongDate(nowMs, authority())
    if (wrong !== undefined) throw new Error(wrong)
    return issueNodeClient(authority(), request, {
      nowMs,
      ...terms,
      ...(!isOlder && { serialPrefix: storeMark(storeID) }),
      expirationSeconds: Math.min(expirationSeconds, signingMs / 1000),
    })
  }
}
