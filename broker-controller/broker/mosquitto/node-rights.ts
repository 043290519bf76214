/** Decides which nodes have rights on an external MQTT server, and which certificates it is to reject. */
import { nodeIdentity, nodeNameOf } from '../../../api/identity.ts'
import type { RecordedCertificate } from '../../store/certificates/issued-certificates.ts'
import type { Revocation } from '../../store/revocations.ts'

export type RightsFacts = {
  /** Names of the Node objects. */
  readonly nodes: Iterable<string>
  readonly issued: readonly RecordedCertificate[]
  /** By user. */
  readonly revocations: ReadonlyMap<string, Revocation>
  /** `caHash` of the authorities whose certificates are accepted. */
  readonly trusted: ReadonlySet<string>
  /** `caHash` of the one that signs: only its list can still be written. */
  readonly signer: string
  /** Serial numbers in the last lists of the others. */
  readonly listed: ReadonlySet<string>
  readonly nowMs: number
}

export type NodeRights = {
  /** In the order of names. */
  readonly nodes: readonly string[]
  /**
   * Nodes without rights although they have a certificate that is not revoked: an earlier one of the same name was, and is in no list, so
   * that its holder would have the same rights.
   */
  readonly withheld: readonly string[]
  readonly revoked: readonly (RecordedCertificate & { readonly serial: string; readonly revokedMs: number })[]
}

/** A node that has joined and is not registered yet has rights, too: it connects at once. */
export function nodeRights(facts: RightsFacts): NodeRights {
  const { nodes, issued, revocations, trusted, nowMs } = facts
  const valid = issued.filter(({ authority, notAfterMs }) => trusted.has(authority) && notAfterMs > nowMs)
  const byUser = new Map<string, RecordedCertificate[]>()
  for (const certificate of valid) byUser.set(certificate.user, [...(byUser.get(certificate.user) ?? []), certificate])
  const registered = new Set([...nodes].map((name) => nodeIdentity(name).user))
  const allowed: string[] = []
  const withheld: string[] = []
  for (const user of new Set([...registered, ...byUser.keys()])) {
    const name = nodeNameOf(user)
    if (name === undefined) continue
    const right = rightOf(byUser.get(user) ?? [], revocations.get(user), registered.has(user), facts)
    if (right === 'allowed') allowed.push(name)
    if (right === 'withheld') withheld.push(name)
  }
  const revoked = valid.flatMap((certificate) => {
    const { user, serial, notBeforeMs } = certificate
    const revocation = revocations.get(user)
    if (serial === undefined || revocation === undefined || notBeforeMs >= revocation.beforeMs) return []
    return [{ ...certificate, serial, revokedMs: revocation.beforeMs }]
  })
  return { nodes: allowed.sort(), withheld: withheld.sort(), revoked }
}

function rightOf(
  certificates: readonly RecordedCertificate[],
  revocation: Revocation | undefined,
  isRegistered: boolean,
  { signer, listed }: Pick<RightsFacts, 'signer' | 'listed'>,
): 'allowed' | 'withheld' | 'none' {
  if (revocation === undefined) return isRegistered || certificates.length > 0 ? 'allowed' : 'none'
  const isFresh = certificates.some(
    ({ serial, notBeforeMs }) => serial !== undefined && notBeforeMs >= revocation.beforeMs,
  )
  const canBeListed = ({ serial, authority }: RecordedCertificate) =>
    serial !== undefined && (authority === signer || listed.has(serial))
  const isUnlisted = certificates.some((one) => one.notBeforeMs < revocation.beforeMs && !canBeListed(one))
  if (isUnlisted) return isFresh || isRegistered ? 'withheld' : 'none'
  return isFresh ? 'allowed' : 'none'
}
