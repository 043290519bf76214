/** Reads and checks certificate requests (PKCS#10) of nodes. */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { nodeClientSigner, nodeClientUsages } from '../api/certificate-signing-request.ts'
import { nodeNameOf, nodesGroup } from '../api/identity.ts'
import { bytesOf, type Der, decodeDer, derText, encode, fromPem, isContextTag, itemsOf, oidOf } from './der.ts'
import { csrLabel, oids } from './x509.ts'

export type NodeCSRTerms = {
  readonly signerName: string
  readonly usages: readonly string[]
  /** The only name it may ask for, if the requester is a node already. */
  readonly expectedName?: string
}

/** A request that its node may have signed. `keyHash`: SHA-256 of the public key, hexadecimal; its signature proves that the requester has the key. */
export type NodeCSR = {
  readonly ok: true
  readonly nodeName: string
  readonly publicKey: KeyObject
  readonly keyHash: string
}

export type NodeCSRAnswer = NodeCSR | { readonly ok: false; readonly reason: string }

/**
 * Accepts a node's request for its client certificate and nothing else, by the rules of Kubernetes' signer
 * kubernetes.io/kube-apiserver-client-kubelet (pkg/apis/certificates/helpers.go, ValidateKubeletClientCSR), with a strong key.
 */
export function checkNodeCSR(pem: string, { signerName, usages, expectedName }: NodeCSRTerms): NodeCSRAnswer {
  if (signerName !== nodeClientSigner) return no(`signer ${signerName} is not ${nodeClientSigner}`)
  if (!areNodeClientUsages(usages)) {
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
  return { ok: true, nodeName, publicKey: read.publicKey, keyHash: hashOf(read.publicKey) }
}

/** In any order. Key encipherment, which keys of elliptic curves do not have, may be among them. */
function areNodeClientUsages(usages: readonly string[]): boolean {
  const asked = new Set(usages)
  asked.delete('key encipherment')
  return asked.size === nodeClientUsages.length && nodeClientUsages.every((usage) => asked.has(usage))
}

/** The common name in the request; undefined if it cannot be read. */
export function commonNameOfCSR(pem: string): string | undefined {
  const read = readCSR(pem)
  return typeof read === 'string' ? undefined : read.subject[oids.commonName]?.[0]
}

/**
 * Why the text is not a certificate request for any signer; undefined: it is one, and its signature is by its own key (validateCSR in
 * pkg/apis/certificates/validation/validation.go). Text around the first PEM block is ignored, as by Go. A signature by a method that is
 * not known here is left to the signer.
 */
export function csrProblem(pem: string): string | undefined {
  const begin = pem.indexOf(`-----BEGIN ${csrLabel}-----`)
  const end = pem.indexOf(csrEnd, begin)
  const bytes = begin < 0 || end < 0 ? undefined : fromPem(csrLabel, pem.slice(begin, end + csrEnd.length))
  if (bytes === undefined) return 'PEM block type must be CERTIFICATE REQUEST'
  const unreadable = 'it is not a PKCS#10 request that can be read'
  if (bytes.length > mostBytes) return tooLarge
  try {
    const [body, algorithm, signature] = itemsOf(decodeDer(bytes), 'sequence') ?? []
    const [, , keyInfo] = itemsOf(body, 'sequence') ?? []
    const proof = bytesOf(signature, 'bits')
    if (body === undefined || keyInfo === undefined || proof === undefined) return unreadable
    const publicKey = createPublicKey({ key: encode(keyInfo), format: 'der', type: 'spki' })
    const hash = signatureHashes[oidOf(itemsOf(algorithm, 'sequence')?.[0]) ?? '']
    if (hash === undefined || verify(hash, encode(body), publicKey, proof)) return undefined
    return 'its signature is not by its own key'
  } catch {
    return unreadable
  }
}

/** A request with two thousand alternative names is smaller. Each byte may be a value of its own, which takes time to read. */
const mostBytes = 64 * 1024
const tooLarge = `it has more than ${mostBytes} bytes`
const csrEnd = `-----END ${csrLabel}-----`

function no(reason: string): NodeCSRAnswer {
  return { ok: false, reason }
}

function hashOf(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}

export type ReadCSR = {
  readonly subject: { readonly [oid: string]: readonly string[] | undefined }
  readonly publicKey: KeyObject
  readonly hasAlternativeNames: boolean
}

/** The content of the request, its signature verified; or what is wrong with it. */
export function readCSR(pem: string): ReadCSR | string {
  const bytes = fromPem(csrLabel, pem)
  if (bytes === undefined) return 'it is not one PEM block of type CERTIFICATE REQUEST'
  if (bytes.length > mostBytes) return tooLarge
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
  const lists = (itemsOf(attributes, 0) ?? []).flatMap((attribute) => {
    const [type, values] = itemsOf(attribute, 'sequence') ?? []
    return oidOf(type) === oids.extensionRequest ? (itemsOf(values, 'set') ?? []) : []
  })
  const found: string[] = []
  for (const extension of lists.flatMap((list) => itemsOf(list, 'sequence') ?? [])) {
    const id = oidOf(itemsOf(extension, 'sequence')?.[0])
    if (id === undefined) return undefined
    found.push(id)
  }
  return found
}
