/** Certificates, put together and signed: RFC 5280's structure, and only the parts of it we use. */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { isIP } from 'node:net'
import {
  bits,
  bytesOf,
  type Der,
  decodeDer,
  derInteger,
  encode,
  instant,
  itemsOf,
  octets,
  oid,
  sequence,
  set,
  tagged,
  taggedBytes,
  toPem,
  truth,
  utf8,
} from './der.ts'

export type Name = { readonly commonName: string; readonly organizations: readonly string[] }

/** PEM label of a certificate request (RFC 7468, section 7). */
export const csrLabel = 'CERTIFICATE REQUEST'

export const oids = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  extensionRequest: '1.2.840.113549.1.9.14',
  ecdsaWithSHA256: '1.2.840.10045.4.3.2',
  crlNumber: '2.5.29.20',
} as const

export type CertificateContent = {
  readonly serial: Uint8Array
  readonly issuer: Der
  readonly subject: Der
  readonly publicKey: KeyObject
  readonly notBeforeMs: number
  readonly notAfterMs: number
  readonly extensions: readonly Der[]
}

/** The certificate as PEM, signed with ECDSA over SHA-256. */
export function signCertificate(content: CertificateContent, key: KeyObject): string {
  const body = sequence(
    tagged(0, derInteger(Uint8Array.of(2))), // version 3
    derInteger(content.serial),
    algorithm,
    content.issuer,
    sequence(instant(content.notBeforeMs), instant(content.notAfterMs)),
    content.subject,
    publicKeyDer(content.publicKey),
    tagged(3, sequence(...content.extensions)),
  )
  return toPem('CERTIFICATE', encode(signed(body, key)))
}

/** The body with its signature beside it, as certificates and requests both are. */
export function signed(body: Der, key: KeyObject): Der {
  return sequence(body, algorithm, bits(sign('sha256', encode(body), key)))
}

/** ECDSA over SHA-256. */
export const algorithm = sequence(oid(oids.ecdsaWithSHA256))

/** The organizations and then the common name, as Kubernetes writes its subjects. */
export function nameDer({ commonName, organizations }: Name): Der {
  const parts = [...organizations.map((name) => [oids.organization, name]), [oids.commonName, commonName]] as const
  return sequence(...parts.map(([type, value]) => set(sequence(oid(type), utf8(value)))))
}

export function publicKeyDer(key: KeyObject): Der {
  return decodeDer(key.export({ type: 'spki', format: 'der' }))
}

/** The SHA-1 of the key itself: RFC 5280's first way of naming a key. It is a name, nothing rests on it. */
function keyIdentifier(key: KeyObject): Buffer {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  const point = bytesOf(itemsOf(publicKeyDer(publicKey), 'sequence')?.[1], 'bits')
  if (point === undefined) throw new TypeError('A public key without its bits')
  return createHash('sha1').update(point).digest()
}

/** One extension of a certificate, a request or a list. */
export function extension(id: string, value: Der, critical = false): Der {
  return critical ? sequence(oid(id), truth(true), octets(encode(value))) : sequence(oid(id), octets(encode(value)))
}

/** An authority that signs certificates, and no other authorities. */
export function authorityConstraints(): Der {
  return extension(oids.basicConstraints, sequence(truth(true), derInteger(Uint8Array.of(0))), true)
}

/** No authority: DER leaves a default value out, so the sequence is empty. */
export function leafConstraints(): Der {
  return extension(oids.basicConstraints, sequence(), true)
}

/** RFC 5280's bits, counted from the left. */
const keyUsageBits = { digitalSignature: 0x80, keyEncipherment: 0x20, keyCertSign: 0x04, cRLSign: 0x02 } as const

export function keyUsage(...usages: readonly (keyof typeof keyUsageBits)[]): Der {
  const byte = usages.reduce((sum, usage) => sum | keyUsageBits[usage], 0)
  return extension(oids.keyUsage, bits(Uint8Array.of(byte), 31 - Math.clz32(byte & -byte)), true)
}

export function extendedKeyUsage(usage: 'serverAuth' | 'clientAuth'): Der {
  return extension(oids.extendedKeyUsage, sequence(oid(oids[usage])))
}

export function subjectKeyIdentifier(key: KeyObject): Der {
  return extension(oids.subjectKeyIdentifier, octets(keyIdentifier(key)))
}

export function authorityKeyIdentifier(key: KeyObject): Der {
  return extension(oids.authorityKeyIdentifier, sequence(taggedBytes(0, keyIdentifier(key))))
}

/** DNS names and addresses, distinguished by their form. Throws on what is neither. */
export function subjectAltNames(names: readonly string[]): Der {
  return extension(oids.subjectAltName, sequence(...names.map(altName)))
}

const dnsForm = /^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$/

function altName(name: string): Der {
  const [address = ''] = name.split('%') // an address may carry the interface it is on: fe80::1%eth0
  const family = isIP(address)
  if (family !== 0) return taggedBytes(7, family === 4 ? ipv4Bytes(address) : ipv6Bytes(address))
  if (!dnsForm.test(name) || name.length > 253) throw new Error(`Neither a DNS name nor an address: ${name}`)
  return taggedBytes(2, Buffer.from(name, 'ascii'))
}

function ipv4Bytes(address: string): Uint8Array {
  return Uint8Array.from(address.split('.'), Number)
}

function ipv6Bytes(address: string): Uint8Array {
  const plain = new URL(`http://[${address}]/`).hostname.slice(1, -1) // no dotted end, no leading zeros
  const [before = '', after] = plain.split('::')
  const [head, tail] = [before, after ?? ''].map((part) => (part === '' ? [] : part.split(':')))
  const zeros = Array<string>(8 - (head?.length ?? 0) - (tail?.length ?? 0)).fill('0')
  const words = [...(head ?? []), ...zeros, ...(tail ?? [])].map((word) => Number.parseInt(word, 16))
  return Uint8Array.from(words.flatMap((word) => [word >> 8, word & 0xff]))
}
