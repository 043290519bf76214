/**
 * Who may approve and sign requests for a signer, and whom no request of people may name (plugin/pkg/admission/certificates: approval,
 * signing, subjectrestriction).
 */
import { isDeepStrictEqual } from 'node:util'
import { type CertificateSigningRequest, peopleSigner } from '../../../api/certificate-signing-request.ts'
import { type Identity, mastersGroup } from '../../../api/identity.ts'
import { resources } from '../../../api/resources.ts'
import { organizationsOfCSR } from '../../../certs/client-csr.ts'
import { forbid } from '../handlers/resource-request.ts'
import type { ResourceNeeds, UpdateFacts } from '../handlers/strategy.ts'

/** Throws Forbidden for a request that names the group of administrators. */
export function refuseAdministrators({ metadata, spec }: CertificateSigningRequest): void {
  if (spec.signerName !== peopleSigner) return
  const groups = organizationsOfCSR(Buffer.from(spec.request, 'base64').toString('utf8')) ?? []
  if (!groups.includes(mastersGroup)) return
  const because = `use of ${peopleSigner} signer with ${mastersGroup} group is not allowed`
  throw forbid(resources.certificatesigningrequests, metadata.name ?? '', because)
}

/** Throws Forbidden unless the requester has the verb `approve` or `sign` on the signer, or on all of its domain. */
export async function refuseOtherSigners(
  now: CertificateSigningRequest,
  { old, requester, subresource }: UpdateFacts<CertificateSigningRequest>,
  { access }: Pick<ResourceNeeds, 'access'>,
): Promise<void> {
  const { signerName } = old.spec
  const verb = subresource === 'approval' ? 'approve' : subresource === 'status' ? 'sign' : undefined
  if (verb === undefined || (verb === 'sign' && isDeepStrictEqual(old.status, now.status))) return
  for (const name of [signerName, `${signerName.split('/')[0]}/*`]) {
    if (await mayUse(requester, verb, name, access)) return
  }
  const because = `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`
  throw forbid(resources.certificatesigningrequests, now.metadata.name ?? '', because)
}

async function mayUse(
  requester: Identity,
  verb: string,
  name: string,
  access: ResourceNeeds['access'],
): Promise<boolean> {
  const signer = {
    kind: 'resource',
    group: 'certificates.k8s.io',
    resource: 'signers',
    subresource: '',
    namespace: '',
  } as const
  return (await access.decide(requester, { ...signer, verb, name, fields: new Map() })).allowed
}
