/** Issues the certificates of servers, administrators and nodes. */
import { createPublicKey, type KeyObject, randomBytes } from 'node:crypto'
import { administrator, type Identity, nodeIdentity, peerControllerIdentity } from '../api/identity.ts'
import {
  type Authority,
  backdateMs,
  dayMs,
  newKey,
  privateKeyPem,
  readCertificate,
  refuseWrongDate,
} from './authority.ts'
import { decodeDer, itemsOf } from './der.ts'
import {
  authorityKeyIdentifier,
  extendedKeyUsage,
  keyUsage,
  leafConstraints,
  type Name,
  nameDer,
  signCertificate,
  subjectAltNames,
  subjectKeyIdentifier,
} from './x509.ts'

/** Both PEM. */
export type Issued = { readonly certificate: string; readonly key: string }

/** As Kubernetes: a node renews long before. */
export const yearMs = 365 * dayMs
/** Made at every start of the controller; one that is never restarted must not lose its fleet to a date. */
const serverLifeMs = 5 * yearMs

export type ServerRequest = {
  /** DNS names and addresses, at least one. The first becomes the common name. */
  readonly names: readonly string[]
  readonly nowMs: number
  readonly lifeMs?: number
}

export function issueServer(authority: Authority, { names, nowMs, lifeMs = serverLifeMs }: ServerRequest): Issued {
  const [first] = names
  if (first === undefined) throw new Error('A server certificate needs at least one name')
  // A common name holds 64 characters at most; clients look at the alternative names only.
  const subject = { commonName: first.slice(0, 64), organizations: [] }
  return withNewKey((publicKey) =>
    issue(authority, { subject, publicKey, usage: 'serverAuth', names: [...new Set(names)], nowMs, lifeMs }),
  )
}

/** For `system:masters`: its holder may do everything. */
export function issueAdmin(
  authority: Authority,
  { nowMs, lifeMs = yearMs, ...rest }: Pick<Leaf, 'nowMs' | 'notBeforeMs'> & { readonly lifeMs?: number },
): Issued {
  const subject = nameOf(administrator)
  return withNewKey((publicKey) =>
    issue(authority, { subject, publicKey, usage: 'clientAuth', nowMs, lifeMs, ...rest }),
  )
}

/**
 * For the connection of a controller to an external MQTT server, which has it by its name, and for requests that it passes on to the one
 * that leads: there its name gives no right, its key has to be registered in the store.
 */
export function issueController(authority: Authority, { nowMs }: Pick<Leaf, 'nowMs'>): Issued {
  const subject = nameOf(peerControllerIdentity)
  return withNewKey((publicKey) => issue(authority, { subject, publicKey, usage: 'clientAuth', nowMs, lifeMs: yearMs }))
}

/** The only name that extension servers let name users to them. */
export const frontProxyName = 'front-proxy-client'

/** For requests to extension servers. `authority`: that of the front proxy. */
export function issueFrontProxyClient(authority: Authority, { nowMs }: Pick<Leaf, 'nowMs'>): Issued {
  const subject = { commonName: frontProxyName, organizations: [] }
  return withNewKey((publicKey) => issue(authority, { subject, publicKey, usage: 'clientAuth', nowMs, lifeMs: yearMs }))
}

export type NodeRequest = { readonly nodeName: string; readonly nowMs: number; readonly lifeMs?: number }

/** A node's certificate with a key made here; a machine that joins makes its own and asks with a CSR. */
export function issueNode(authority: Authority, { nodeName, nowMs, lifeMs = yearMs }: NodeRequest): Issued {
  return withNewKey((publicKey) =>
    issue(authority, { subject: nodeSubject(nodeName), publicKey, usage: 'clientAuth', nowMs, lifeMs }),
  )
}

export type SigningTerms = {
  readonly nowMs: number
  /** As requested: at least 600, at most a year. */
  readonly expirationSeconds?: number
  /** Start of its validity, if certificates of the same name were revoked at that time. */
  readonly notBeforeMs?: number
  /** First bytes of its serial number; see `issue`. */
  readonly serialPrefix?: Uint8Array
}

/** The node's certificate, PEM, for a request that `checkNodeCSR` accepted. */
export function issueNodeClient(
  authority: Authority,
  { nodeName, publicKey }: { readonly nodeName: string; readonly publicKey: KeyObject },
  { nowMs, expirationSeconds, notBeforeMs, serialPrefix }: SigningTerms,
): string {
  const requestedMs = expirationSeconds === undefined ? yearMs : Math.max(expirationSeconds, 600) * 1000
  return issue(authority, {
    subject: nodeSubject(nodeName),
    publicKey,
    usage: 'clientAuth',
    nowMs,
    lifeMs: Math.min(requestedMs, yearMs),
    ...(notBeforeMs !== undefined && { notBeforeMs }),
    ...(serialPrefix !== undefined && { serialPrefix }),
  })
}

export function nodeSubject(nodeName: string): Name {
  return nameOf(nodeIdentity(nodeName))
}

function nameOf({ user, groups }: Identity): Name {
  return { commonName: user, organizations: groups }
}

export type Leaf = {
  readonly subject: Name
  readonly publicKey: KeyObject
  readonly usage: 'serverAuth' | 'clientAuth'
  readonly names?: readonly string[]
  readonly nowMs: number
  readonly lifeMs: number
  /** At the earliest. */
  readonly notBeforeMs?: number
  /** How the serial number begins: at most eight bytes, the first from 1 to 127; the rest is random. */
  readonly serialPrefix?: Uint8Array
}

/** The signed certificate, PEM: back-dated a little, and never beyond the authority's own end. */
export function issue(
  authority: Authority,
  { subject, publicKey, usage, names, nowMs, lifeMs, notBeforeMs = 0, serialPrefix = new Uint8Array() }: Leaf,
): string {
  refuseWrongDate(nowMs)
  if (nowMs >= authority.notAfterMs) {
    throw new Error(`The authority ended on ${new Date(authority.notAfterMs).toISOString()}: it cannot sign anything`)
  }
  const authorityKey = createPublicKey(authority.key)
  return signCertificate(
    {
      // At most 20 bytes (RFC 5280, 4.1.2.2), of which at least 8 cannot be guessed.
      serial: Buffer.concat([serialPrefix, randomBytes(serialPrefix.length > 0 ? 11 : 16)]),
      issuer: subjectIn(authority.certificate),
      subject: nameDer(subject),
      publicKey,
      notBeforeMs: Math.max(nowMs - backdateMs, notBeforeMs),
      notAfterMs: Math.min(nowMs + lifeMs, authority.notAfterMs),
      extensions: [
        leafConstraints(),
        publicKey.asymmetricKeyType === 'rsa'
          ? keyUsage('digitalSignature', 'keyEncipherment')
          : keyUsage('digitalSignature'),
        extendedKeyUsage(usage),
        subjectKeyIdentifier(publicKey),
        authorityKeyIdentifier(authorityKey),
        ...(names === undefined ? [] : [subjectAltNames(names)]),
      ],
    },
    authority.key,
  )
}

function withNewKey(certify: (publicKey: KeyObject) => string): Issued {
  const key = newKey()
  return { certificate: certify(createPublicKey(key)), key: privateKeyPem(key) }
}

/** Byte for byte as in the authority's certificate, because verifiers compare the encoded names. */
function subjectIn(certificate: string) {
  const body = itemsOf(
    itemsOf(decodeDer(readCertificate(certificate, 'the authority').raw), 'sequence')?.[0],
    'sequence',
  )
  const subject = body?.[5] // version, serial, algorithm, issuer, validity, subject
  if (subject === undefined) throw new TypeError('A certificate without a subject')
  return subject
}
