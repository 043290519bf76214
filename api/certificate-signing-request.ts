/** certificates.k8s.io/v1 CertificateSigningRequest. */
import { ObjectMetaSchema } from './meta.ts'
import {
  bytes,
  type Described,
  field,
  integer,
  list,
  listBy,
  mapOf,
  object,
  oneOf,
  optional,
  pointer,
  text,
  time,
} from './schema.ts'

const CertificateSigningRequestConditionSchema = object('certificates.v1.CertificateSigningRequestCondition', {
  type: field(1, text),
  status: field(6, text),
  reason: field(2, optional(text)),
  message: field(3, optional(text)),
  lastUpdateTime: field(4, optional(time)),
  lastTransitionTime: field(5, optional(time)),
})

export const CertificateSigningRequestSchema = object({
  apiVersion: oneOf('certificates.k8s.io/v1'),
  kind: oneOf('CertificateSigningRequest'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    object({
      request: field(1, bytes),
      signerName: field(7, text),
      usages: field(5, optional(list(text))),
      expirationSeconds: pointer(8, optional(integer)),
      username: field(2, optional(text)),
      uid: field(3, optional(text)),
      groups: field(4, optional(list(text))),
      extra: field(6, optional(mapOf(list(text)))),
    }),
  ),
  status: field(
    3,
    optional(
      object({
        conditions: field(1, optional(listBy('type', CertificateSigningRequestConditionSchema, { patch: 'whole' }))),
        certificate: field(2, optional(bytes)),
      }),
    ),
  ),
})
export type CertificateSigningRequest = Described<typeof CertificateSigningRequestSchema>

/** The signer of node client certificates, as Kubernetes names it. */
export const nodeClientSigner = 'kubernetes.io/kube-apiserver-client-kubelet'

/** The signer of client certificates for people and programs, as Kubernetes names it. */
export const peopleSigner = 'kubernetes.io/kube-apiserver-client'

/** A condition of Bramble: the request is pending until an operator approves it; its message gives the reason. */
export const waitingCondition = 'Waiting'

/** Whether this condition is an answer, and not only the reason why there is none yet. */
export function isVerdict({ type }: { readonly type: string }): boolean {
  return type !== waitingCondition
}

/** The key usages a node client certificate may be asked with; `key encipherment` may be left out. */
export const nodeClientUsages = ['digital signature', 'client auth'] as const
