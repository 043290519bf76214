/** Signs what an operator approved for the signer of client certificates. Its requests are never approved automatically. */
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import { type ClientCSR, checkClientCSR } from '../../../certs/client-csr.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import { revocationsIn, revocationsKey } from '../../store/revocations.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { answeredRequest, revokedAheadMs } from './certificate-approval.ts'
import { pemOf } from './request-answers.ts'

/** Signs a request that was checked. Returns the certificate, PEM. Throws while the clock is wrong. */
export type ClientCertificateSigner = (
  request: ClientCSR,
  terms: { readonly expirationSeconds?: number; readonly notBeforeMs?: number },
) => string

export type ClientCertificateNeeds = {
  readonly store: Store
  readonly clientSigner: ClientCertificateSigner
  readonly clock: Clock
  readonly limited: LimitedLog
}

export async function answerClientRequest(
  csr: StoredObject<'certificatesigningrequests'>,
  { store, clientSigner, clock, limited }: ClientCertificateNeeds,
): Promise<void> {
  if (!isToBeSigned(csr)) return
  const { request, usages = [], expirationSeconds } = csr.spec
  const facts = { csr: csr.metadata.name, user: csr.spec.username }
  const nowMs = clock.wallMs()
  const fail = async (reason: string, message: string) => {
    limited.warn(csr.spec.username ?? '', 'Certificate request refused', { ...facts, reason, why: message })
    const failed = { type: 'Failed', reason, message } as const
    await store.updateStatus('certificatesigningrequests', answeredRequest(csr, failed, rfc3339(nowMs)))
  }
  const checked = checkClientCSR(pemOf(request), usages)
  if (!checked.ok) return fail('SignerValidationFailure', checked.reason)
  const revoked = revocationsIn(await store.get('configmaps', revocationsKey)).get(checked.user)
  if (revoked !== undefined && revoked.beforeMs - nowMs > revokedAheadMs) {
    return fail('RevokedAhead', `certificates of ${checked.user} are revoked until ${rfc3339(revoked.beforeMs)}`)
  }
  const pem = clientSigner(checked, {
    ...(expirationSeconds !== undefined && { expirationSeconds }),
    ...(revoked !== undefined && { notBeforeMs: revoked.beforeMs }),
  })
  limited.info(csr.spec.username ?? '', 'Certificate signed', { ...facts, for: checked.user })
  const certificate = Buffer.from(pem).toString('base64')
  await store.updateStatus('certificatesigningrequests', { ...csr, status: { ...csr.status, certificate } })
}

function isToBeSigned({ status }: CertificateSigningRequest): boolean {
  const has = (wanted: string) => status?.conditions?.some(({ type }) => type === wanted) === true
  return has('Approved') && !has('Denied') && !has('Failed') && !status?.certificate
}
