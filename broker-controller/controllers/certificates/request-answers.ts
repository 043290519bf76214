/** Carries out the decision on a certificate request: approves, denies, defers or signs it. */
import { type CertificateSigningRequest, waitingCondition } from '../../../api/certificate-signing-request.ts'
import { nodeIdentity, olderThanStoreKey } from '../../../api/identity.ts'
import type { NodeCSR, NodeCSRAnswer } from '../../../certs/csr-check.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import { revocationsIn, revocationsKey, revoke } from '../../store/revocations.ts'
import type { Store, StoredObject, StoreOrigin } from '../../store/store.ts'
import { answeredRequest, type CertificateStep } from './certificate-approval.ts'

/** Signs a request that was checked. Returns the certificate, PEM. */
export type CertificateSigner = (request: NodeCSR, terms: CertificateTerms) => string

export type CertificateTerms = {
  readonly expirationSeconds?: number
  readonly notBeforeMs?: number
  /** It renews a certificate that is older than the store, and counts as older itself. */
  readonly isOlder?: boolean
}

export type RequestAnswerNeeds = {
  readonly store: Store
  readonly signer: CertificateSigner
  readonly clock: Clock
  readonly log: Log
  /** For lines that a requester can cause. */
  readonly limited: LimitedLog
  readonly origin?: Pick<StoreOrigin, 'id'>
  /** Called with each certificate of a node before the node can read it. */
  readonly issued?: IssuedListener | undefined
}

export type IssuedListener = (nodeName: string, pem: string) => Promise<void>

type StoredRequest = StoredObject<'certificatesigningrequests'>

type StepOf<Name extends CertificateStep['step']> = Extract<CertificateStep, { readonly step: Name }>

export interface RequestAnswers {
  /** Carries out `step`. `checked`: the request, which is signed if the step asks for it. */
  act(csr: StoredRequest, step: CertificateStep, checked: NodeCSRAnswer): Promise<void>
}

export function requestAnswers({
  store,
  signer,
  clock,
  log,
  limited,
  origin,
  issued,
}: RequestAnswerNeeds): RequestAnswers {
  const act = async (csr: StoredRequest, step: CertificateStep, checked: NodeCSRAnswer): Promise<void> => {
    const { name } = csr.metadata
    const now = rfc3339(clock.wallMs())
    switch (step.step) {
      case 'none':
        return
      case 'approve': {
        const message = 'Auto approving node client certificate: the machine showed a valid token or certificate.'
        limited.info(csr.spec.username ?? '', 'Certificate request approved', { csr: name, user: csr.spec.username })
        return write(answeredRequest(csr, { type: 'Approved', reason: 'AutoApproved', message }, now))
      }
      case 'deny':
      case 'fail': {
        const { reason, message } = step
        limited.warn(csr.spec.username ?? '', 'Certificate request refused', {
          csr: name,
          user: csr.spec.username,
          reason,
          why: message,
        })
        return write(answeredRequest(csr, { type: step.step === 'deny' ? 'Denied' : 'Failed', reason, message }, now))
      }
      case 'wait':
        return wait(csr, step)
      case 'sign':
        return sign(csr, step, checked)
    }
  }
  const wait = async (csr: StoredRequest, { reason, message }: StepOf<'wait'>): Promise<void> => {
    const known = csr.status?.conditions?.find(({ type }) => type === waitingCondition)
    if (known?.reason === reason && known.message === message) return
    limited.info(csr.spec.username ?? '', 'Certificate request waits for an operator', {
      csr: csr.metadata.name,
      user: csr.spec.username,
      reason,
    })
    await write(answeredRequest(csr, { type: waitingCondition, reason, message }, rfc3339(clock.wallMs())))
  }
  const sign = async (csr: StoredRequest, step: StepOf<'sign'>, checked: NodeCSRAnswer): Promise<void> => {
    const { name } = csr.metadata
    if (!checked.ok) throw new Error(`Request ${name} is not signed: ${checked.reason}`)
    const { expirationSeconds } = csr.spec
    if (step.replaces) {
      log.warn('Node replaced by another machine: its earlier certificates are revoked', { node: step.nodeName })
      await revoke({ store, clock }, nodeIdentity(step.nodeName).user, 'Replaced')
    }
    const notBeforeMs = await revokedBeforeMs(store, step.nodeName)
    const pem = signer(checked, {
      ...(expirationSeconds !== undefined && { expirationSeconds }),
      ...(notBeforeMs !== undefined && { notBeforeMs }),
      isOlder: origin !== undefined && csr.spec.extra?.[olderThanStoreKey]?.includes(origin.id) === true,
    })
    await issued?.(step.nodeName, pem)
    limited.info(csr.spec.username ?? '', 'Certificate signed', { csr: name })
    await write({ ...csr, status: { ...csr.status, certificate: Buffer.from(pem).toString('base64') } })
  }

  /** With the version it was decided on: after a conflict the change is decided again. */
  const write = async (csr: CertificateSigningRequest) => {
    await store.updateStatus('certificatesigningrequests', csr)
  }

  return { act }
}

/** Certificates of the node that were issued before this moment are revoked; undefined: none are. */
export async function revokedBeforeMs(store: Store, nodeName: string): Promise<number | undefined> {
  return revocationsIn(await store.get('configmaps', revocationsKey)).get(nodeIdentity(nodeName).user)?.beforeMs
}

/** PEM text from the base64 of a request. */
export function pemOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}
