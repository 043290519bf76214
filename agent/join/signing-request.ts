/** The CertificateSigningRequest object of a joining node, and what has become of it. */
import { createHash, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import {
  type CertificateSigningRequest,
  CertificateSigningRequestSchema,
  nodeClientSigner,
  nodeClientUsages,
  waitingCondition,
} from '../../api/certificate-signing-request.ts'
import { decode } from '../../api/decode.ts'
import { nodeIdentity, nodesGroup } from '../../api/identity.ts'
import { type HardwareIdentity, hardwareIdentityAnnotation } from '../../api/node/hardware-identity.ts'
import { createCSR } from '../../certs/csr.ts'

export const signingRequestsPath = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

/**
 * A node's request for its client certificate. Named after the key, so that no two machines' requests meet, and after
 * `series`, which separates the requests for one key.
 */
export function signingRequest(
  nodeName: string,
  key: KeyObject,
  hardware: HardwareIdentity,
  series = '',
): CertificateSigningRequest {
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const digest = createHash('sha256').update(publicKey).update(series).digest('hex')
  const pem = createCSR({ commonName: nodeIdentity(nodeName).user, organization: nodesGroup, key })
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      name: `node-csr-${digest.slice(0, 40)}`,
      annotations: { [hardwareIdentityAnnotation]: JSON.stringify(hardware) },
    },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: nodeClientSigner,
      usages: [...nodeClientUsages],
    },
  }
}

export type Progress =
  /** `waitsBecause`: it waits for an operator. */
  | { readonly state: 'pending'; readonly waitsBecause?: string }
  | { readonly state: 'approved' }
  | { readonly state: 'issued'; readonly certificate: string }
  | { readonly state: 'denied'; readonly reason: string; readonly message: string }
  | { readonly state: 'failed'; readonly message: string }
  /** It is no CertificateSigningRequest at all. */
  | { readonly state: 'strange' }

/** The state of the request in the API's answer. A denial counts whatever else is there. */
export function progressOf(body: unknown): Progress {
  const decoded = decode(CertificateSigningRequestSchema, body)
  if (!decoded.ok) return { state: 'strange' }
  const { conditions = [], certificate } = decoded.value.status ?? {}
  const condition = (type: string) => conditions.find((one) => one.type === type)
  const [denied, failed] = [condition('Denied'), condition('Failed')]
  if (denied) return { state: 'denied', reason: denied.reason ?? 'Denied', message: denied.message ?? '' }
  if (failed) return { state: 'failed', message: failed.message ?? '' }
  if (certificate) return { state: 'issued', certificate: Buffer.from(certificate, 'base64').toString() }
  if (condition('Approved')) return { state: 'approved' }
  const waiting = condition(waitingCondition)
  return { state: 'pending', ...(waiting && { waitsBecause: waiting.message ?? 'the controller gives no reason' }) }
}

/** Why this is not the certificate that was asked for; undefined when it is. */
export function certificateProblem(
  pem: string,
  wanted: { readonly key: KeyObject; readonly nodeName: string; readonly authority: X509Certificate },
): string | undefined {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pem)
  } catch {
    return 'it cannot be read'
  }
  if (!certificate.checkPrivateKey(wanted.key)) return "it is not for this machine's key"
  if (!certificate.verify(wanted.authority.publicKey)) return 'it is not signed by the authority'
  const { user } = nodeIdentity(wanted.nodeName)
  const subject = `O=${nodesGroup}\nCN=${user}`
  if (certificate.subject !== subject) return `it is for ${certificate.subject.replaceAll('\n', ', ')}, not for ${user}`
  return undefined
}
