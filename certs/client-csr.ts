/** Certificate requests of people and programs that use the API: made, checked and signed. Nodes have `csr.ts` and `csr-check.ts`. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import {
  bootstrappersGroup,
  lapsedNodesGroup,
  mastersGroup,
  nodesGroup,
  nodeUserPrefix,
  peerControllerIdentity,
} from '../api/identity.ts'
import type { Authority } from './authority.ts'
import { readCSR } from './csr-check.ts'
import { derInteger, encode, sequence, tagged, toPem } from './der.ts'
import { issue, type SigningTerms, yearMs } from './issue.ts'
import { csrLabel, nameDer, oids, publicKeyDer, signed } from './x509.ts'

export type ClientSubject = { readonly user: string; readonly groups: readonly string[] }

/** The request, PEM, signed with the key that it is for. */
export function createClientCSR({ user, groups }: ClientSubject, key: KeyObject): string {
  const subject = nameDer({ commonName: user, organizations: groups })
  const body = sequence(derInteger(Uint8Array.of(0)), subject, publicKeyDer(createPublicKey(key)), tagged(0))
  return toPem(csrLabel, encode(signed(body, key)))
}

/** A request that may be signed; its signature proves that the requester has the key. */
export type ClientCSR = ClientSubject & { readonly ok: true; readonly publicKey: KeyObject }

export type ClientCSRAnswer = ClientCSR | { readonly ok: false; readonly reason: string }

/**
 * May the signer kubernetes.io/kube-apiserver-client sign this, once it is approved? Kubernetes' rules
 * (pkg/controller/certificates/signer/signer.go, plugin/pkg/admission/certificates/subjectrestriction), and no identity of a
 * machine: those are given by other rules, which an approver of people does not check.
 */
export function checkClientCSR(pem: string, usages: readonly string[]): ClientCSRAnswer {
  const no = (reason: string): ClientCSRAnswer => ({ ok: false, reason })
  const wrong = usages.find((usage) => !['digital signature', 'key encipherment', 'client auth'].includes(usage))
  if (wrong !== undefined) return no(`invalid usage for client certificate: ${wrong}`)
  if (!usages.includes('client auth')) return no('missing required usage for client certificate: client auth')
  const read = readCSR(pem)
  if (typeof read === 'string') return no(read)
  const [user, ...others] = read.subject[oids.commonName] ?? []
  const groups = read.subject[oids.organization] ?? []
  if (user === undefined || user === '' || others.length > 0) return no('there must be one common name')
  if (user.startsWith(nodeUserPrefix)) return no(`common name ${JSON.stringify(user)} is that of a node`)
  if (user === peerControllerIdentity.user) return no(`common name ${JSON.stringify(user)} is that of the controllers`)
  const reserved = groups.find((group) => reservedGroups.includes(group))
  if (reserved !== undefined) return no(`organization ${reserved} is not allowed`)
  if (read.hasAlternativeNames) return no('a client certificate may carry no DNS, IP, e-mail or URI names')
  return { ok: true, user, groups, publicKey: read.publicKey }
}

const reservedGroups = [mastersGroup, nodesGroup, lapsedNodesGroup, bootstrappersGroup]

/** The certificate, PEM, for a request that `checkClientCSR` accepted. */
export function issueClient(authority: Authority, { user, groups, publicKey }: ClientCSR, terms: SigningTerms): string {
  const { nowMs, expirationSeconds, notBeforeMs } = terms
  const requestedMs = expirationSeconds === undefined ? yearMs : Math.max(expirationSeconds, 600) * 1000
  return issue(authority, {
    subject: { commonName: user, organizations: groups },
    publicKey,
    usage: 'clientAuth',
    nowMs,
    lifeMs: Math.min(requestedMs, yearMs),
    ...(notBeforeMs !== undefined && { notBeforeMs }),
  })
}

/** The groups that the request names; undefined when it cannot be read. */
export function organizationsOfCSR(pem: string): readonly string[] | undefined {
  const read = readCSR(pem)
  return typeof read === 'string' ? undefined : (read.subject[oids.organization] ?? [])
}
