/** Checks and signs a node's certificate request in one call, for tests that have no controller. */
import { nodeClientSigner, nodeClientUsages } from '../../api/certificate-signing-request.ts'
import type { Authority } from '../authority.ts'
import { checkNodeCSR } from '../csr-check.ts'
import { issueNodeClient, type SigningTerms } from '../issue.ts'

/** The certificate, PEM. Throws when the request is not a node's. */
export function signNodeCSR(authority: Authority, pem: string, terms: SigningTerms): string {
  const request = checkNodeCSR(pem, { signerName: nodeClientSigner, usages: nodeClientUsages })
  if (!request.ok) throw new Error(`Not a node's certificate request: ${request.reason}`)
  return issueNodeClient(authority, request, terms)
}
