/** Checks and signs the certificate requests of nodes with the authority of the fleet. */
import { createHash, type KeyObject } from 'node:crypto'
import { type Authority, wrongDate } from '../../certs/authority.ts'
import { checkNodeCSR, signNodeCSR } from '../../certs/csr.ts'
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

/** `sign` throws while the clock is wrong. */
export function nodeCertificateSigner(needs: NodeCertificateSignerNeeds): CertificateSigner {
  const { authority, storeID, signingMs, clock } = needs
  return {
    check(pem, terms) {
      const answer = checkNodeCSR(pem, terms)
      return answer.ok ? { ok: true, nodeName: answer.nodeName, keyHash: keyHashOf(answer.publicKey) } : answer
    },
    sign(pem, { expirationSeconds = Number.POSITIVE_INFINITY, isOlder = false, ...terms }) {
      const nowMs = clock.wallMs()
      const wrong = wrongDate(nowMs, authority())
      if (wrong !== undefined) throw new Error(wrong)
      return signNodeCSR(authority(), pem, {
        nowMs,
        ...terms,
        ...(!isOlder && { serialPrefix: storeMark(storeID) }),
        expirationSeconds: Math.min(expirationSeconds, signingMs / 1000),
      })
    },
  }
}

function keyHashOf(publicKey: KeyObject): string {
  const der = publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(der).digest('hex')
}
