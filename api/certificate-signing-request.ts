/** certificates.k8s.io/v1 CertificateSigningRequest. */
import { ObjectMetaSchema } from './meta.ts'
import { bytes, type Described, integer, list, listBy, mapOf, object, oneOf, optional, text, time } from './schema.ts'

const CertificateSigningRequestConditionSchema = object({
  type: text,
  status: text,
  reason: optional(text),
  message: optional(text),
  lastUpdateTime: optional(time),
  lastTransitionTime: optional(time),
})

export const CertificateSigningRequestSchema = object({
  apiVersion: oneOf('certificates.k8s.io/v1'),
  kind: oneOf('CertificateSigningRequest'),
  metadata: ObjectMetaSchema,
  spec: object({
    request: bytes,
    signerName: text,
    usages: optional(list(text)),
    expirationSeconds: optional(integer),
    username: optional(text),
    uid: optional(text),
    groups: optional(list(text)),
    extra: optional(mapOf(list(text))),
  }),
  status: optional(
    object({
      conditions: optional(listBy('type', CertificateSigningRequestConditionSchema)),
      certificate: optional(bytes),
    }),
  ),
})
export type CertificateSigningRequest = Described<typeof CertificateSigningRequestSchema>

/** The signer of node client certificates, as Kubernetes names it. */
export const nodeClientSigner = 'kubernetes.io/kube-apiserver-client-kubelet'

/** A condition of ours: the request is pending until an operator approves it; its message says why. */
export const waitingCondition = 'Waiting'

/** Is this condition an answer, and not only the reason why there is none yet? */
export function isVerdict({ type }: { readonly type: string }): boolean {
  return type !== waitingCondition
}
