/** The certificate requests that an identity may read, and the limit of their number. */
import { ApiError } from '../../../api/api-error.ts'
import { type CertificateSigningRequest, isVerdict } from '../../../api/certificate-signing-request.ts'
import { bootstrappersGroup, type Identity, lapsedNodesGroup, mastersGroup, nodesGroup } from '../../../api/identity.ts'

/** Identities that see and make requests of their own only: tokens and nodes. All machines that use one token share it. */
export function seesOwnRequestsOnly({ groups }: Identity): boolean {
  if (groups.includes(mastersGroup)) return false
  return [bootstrappersGroup, lapsedNodesGroup, nodesGroup].some((group) => groups.includes(group))
}

export function isOwnRequest({ user }: Identity, { spec }: CertificateSigningRequest): boolean {
  return spec.username === user
}

/** A rack that is switched on with one token fits; a node asks once a year, and again after a failure. */
const limits = {
  token: { pending: 100, kept: 2_000 },
  node: { pending: 10, kept: 50 },
}
const retryAfterSeconds = 60

/**
 * Throws TooManyRequests when the identity has as many requests as it may: pending ones, or all that are kept (answered
 * ones for an hour). `present`: all requests there are.
 */
export function refuseTooManyRequests(identity: Identity, present: readonly CertificateSigningRequest[]): void {
  if (!seesOwnRequestsOnly(identity)) return
  const own = present.filter((csr) => isOwnRequest(identity, csr))
  const pending = own.filter(({ status }) => !(status?.conditions ?? []).some(isVerdict)).length
  const limit = identity.groups.includes(bootstrappersGroup) ? limits.token : limits.node
  const problem =
    pending >= limit.pending
      ? `${pending} pending certificate signing requests, the most it may have: approve or deny some of them`
      : own.length >= limit.kept
        ? `${own.length} certificate signing requests, the most it may have: answered ones are removed after an hour`
        : undefined
  if (problem === undefined) return
  throw new ApiError('TooManyRequests', `user "${identity.user}" has ${problem}`, { retryAfterSeconds })
}
