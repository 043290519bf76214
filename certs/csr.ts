/** Certificate requests (PKCS#10): made by a node that joins, checked and signed for the fleet. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { nodeClientSigner } from '../api/certificate-signing-request.ts'
import { nodeNameOf, nodesGroup } from '../api/identity.ts'
import type { Authority } from './authority.ts'
import {
  bytesOf,
  type Der,
  decodeDer,
  derInteger,
  derText,
  encode,
  fromPem,
  isContextTag,
  itemsOf,
  oidOf,
  sequence,
  tagged,
  toPem,
} from './der.ts'
import { issue, nodeSubject, yearMs } from './issue.ts'
import { nameDer, oids, publicKeyDer, signed } from './x509.ts'

const pemLabel = 'CERTIFICATE REQUEST'

export type CSRSubject = { readonly commonName: string; readonly organization: string; readonly key: KeyObject }

/** The request, PEM, signed with the key that it is for. */
export function createCSR({ commonName, organization, key }: CSRSubject): string {
  const body = sequence(
    derInteger(Uint8Array.of(0)), // version 1
    nameDer({ commonName, organizations: [organization] }),
    publicKeyDer(createPublicKey(key)),
    tagged(0), // no attributes
  )
  return toPem(pemLabel, encode(signed(body, key)))
}

/** The key usages a node client certificate may be asked with; `key encipherment` may be left out. */
export const nodeClientUsages = ['digital signature', 'client auth'] as const

export type NodeCSRTerms = {
  readonly signerName: string
  readonly usages: readonly string[]
  /** The only name it may ask for, when the one who asks is a node already. */
  readonly expectedName?: string
}

export type NodeCSRAnswer =
  | { readonly ok: true; readonly nodeName: string; readonly publicKey: KeyObject }
  | { readonly ok: false; readonly reason: string }

/** Is this a node's request for its client certificate, and nothing more? Kubernetes' rules, and a key worth having. */
export function checkNodeCSR(pem: string, { signerName, usages, expectedName }: NodeCSRTerms): NodeCSRAnswer {
  if (signerName !== nodeClientSigner) return no(`signer ${signerName} is not ${nodeClientSigner}`)
  const asked = new Set(usages)
  asked.delete('key encipherment')
  if (asked.size !== nodeClientUsages.length || !nodeClientUsages.every((usage) => asked.has(usage))) {
    return no(`usages must be digital signature and client auth, not ${[...usages].join(', ') || 'none'}`)
  }
  const read = readCSR(pem)
  if (typeof read === 'string') return no(read)
  const [commonName, ...otherNames] = read.subject[oids.commonName] ?? []
  const organizations = read.subject[oids.organization] ?? []
  if (organizations.length !== 1 || organizations[0] !== nodesGroup) {
    return no(`organization must be exactly ${nodesGroup}, not ${organizations.join(', ') || 'none'}`)
  }
  if (commonName === undefined || otherNames.length > 0) return no('there must be one common name')
  const nodeName = nodeNameOf(commonName)
  if (nodeName === undefined) {
    return no(`common name must be system:node: and a node's name, not ${JSON.stringify(commonName)}`)
  }
  if (expectedName !== undefined && nodeName !== expectedName) {
    return no(`node ${expectedName} may not ask for a certificate of node ${nodeName}`)
  }
  if (read.hasAlternativeNames) return no('a client certificate may carry no DNS, IP, e-mail or URI names')
  return { ok: true, nodeName, publicKey: read.publicKey }
}

export type SigningTerms = {
  readonly nowMs: number
  /** Wished for by the one who asks: at least 600, at most a year. */
  readonly expirationSeconds?: number
  /** Not good before this: earlier ones of the same name were revoked then. */
  readonly notBeforeMs?: number
  /** How its serial number begins; see `issue`. */
  readonly serialPrefix?: Uint8Array
}

/** The node's certificate, PEM. Throws when the request is not a node's: ask `checkNodeCSR` first. */
export function signNodeCSR(
  authority: Authority,
  pem: string,
  { nowMs, expirationSeconds, notBeforeMs, serialPrefix }: SigningTerms,
): string {
  const answer = checkNodeCSR(pem, { signerName: nodeClientSigner, usages: nodeClientUsages })
  if (!answer.ok) throw new Error(`Not a node's certificate request: ${answer.reason}`)
  const wishedMs = expirationSeconds === undefined ? yearMs : Math.max(expirationSeconds, 600) * 1000
  return issue(authority, {
    subject: nodeSubject(answer.nodeName),
    publicKey: answer.publicKey,
    usage: 'clientAuth',
    nowMs,
    lifeMs: Math.min(wishedMs, yearMs),
    ...(notBeforeMs !== undefined && { notBeforeMs }),
    ...(serialPrefix !== undefined && { serialPrefix }),
  })
}

/** Whom the request names; undefined when it cannot be read. */
export function commonNameOfCSR(pem: string): string | undefined {
  const read = readCSR(pem)
  return typeof read === 'string' ? undefined : read.subject[oids.commonName]?.[0]
}

function no(reason: string): NodeCSRAnswer {
  return { ok: false, reason }
}

type ReadCSR = {
  readonly subject: { readonly [oid: string]: readonly string[] | undefined }
  readonly publicKey: KeyObject
  readonly hasAlternativeNames: boolean
}

/** The content of the request, its signature verified; or what is wrong with it. */
function readCSR(pem: string): ReadCSR | string {
  const bytes = fromPem(pemLabel, pem)
  if (bytes === undefined) return 'it is not one PEM block of type CERTIFICATE REQUEST'
  try {
    const [body, algorithm, signature] = itemsOf(decodeDer(bytes), 'sequence') ?? []
    const [, subject, keyInfo, attributes] = itemsOf(body, 'sequence') ?? []
    const proof = bytesOf(signature, 'bits')
    const hash = signatureHashes[oidOf(itemsOf(algorithm, 'sequence')?.[0]) ?? '']
    if (body === undefined || keyInfo === undefined || proof === undefined) return 'it is not a PKCS#10 request'
    if (hash === undefined)
      return 'it is signed by a method that is not accepted: use ECDSA or RSA with SHA-256 or more'
    const publicKey = createPublicKey({ key: encode(keyInfo), format: 'der', type: 'spki' })
    if (!isStrong(publicKey)) return 'its key is too weak or of an unknown kind: use ECDSA P-256'
    if (!verify(hash, encode(body), publicKey, proof)) return 'its signature is not by its own key'
    const names = namesIn(subject)
    const extensions = extensionsIn(attributes)
    if (names === undefined || extensions === undefined) return 'its subject or its attributes cannot be read'
    return { subject: names, publicKey, hasAlternativeNames: extensions.includes(oids.subjectAltName) }
  } catch {
    return 'it is not a PKCS#10 request that can be read' // the reasons that forge and OpenSSL give do not help an operator
  }
}

const signatureHashes: { readonly [oid: string]: string | undefined } = {
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
}

function isStrong({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  if (asymmetricKeyType === 'rsa') return (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048
  const curves = ['prime256v1', 'secp384r1', 'secp521r1']
  return asymmetricKeyType === 'ec' && curves.includes(asymmetricKeyDetails?.namedCurve ?? '')
}

/** Values by type of attribute; undefined when a part cannot be read. */
function namesIn(subject: Der | undefined): { readonly [oid: string]: readonly string[] | undefined } | undefined {
  const names = new Map<string, readonly string[]>()
  for (const set of itemsOf(subject, 'sequence') ?? []) {
    for (const pair of itemsOf(set, 'set') ?? []) {
      const [type, value] = itemsOf(pair, 'sequence') ?? []
      const [id, text] = [oidOf(type), derText(value)]
      if (id === undefined || text === undefined) return undefined
      names.set(id, [...(names.get(id) ?? []), text])
    }
  }
  return Object.fromEntries(names)
}

/** The extensions asked for, by their ids; undefined when a part cannot be read. */
function extensionsIn(attributes: Der | undefined): readonly string[] | undefined {
  if (attributes === undefined) return []
  if (!isContextTag(attributes, 0)) return undefined
  const found: string[] = []
  for (const attribute of itemsOf(attributes, 0) ?? []) {
    const [type, values] = itemsOf(attribute, 'sequence') ?? []
    if (oidOf(type) !== oids.extensionRequest) continue
    for (const list of itemsOf(values, 'set') ?? []) {
      for (const extension of itemsOf(list, 'sequence') ?? []) {
        const id = oidOf(itemsOf(extension, 'sequence')?.[0])
        if (id === undefined) return undefined
        found.push(id)
      }
    }
  }
  return found
}
