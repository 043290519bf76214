/** Keys of age (https://age-encryption.org/v1): X25519, written as Bech32. Files for the public key are read with the private one alone. */
import {
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import { bech32, fromBech32 } from './bech32.ts'

export type AgeIdentity = {
  /** `AGE-SECRET-KEY-1…` */
  readonly text: string
  /** `age1…`: for whom files are encrypted. */
  readonly recipient: string
  /** The 32 bytes of the private key. */
  readonly secret: Buffer
}

const [secretPrefix, publicPrefix] = ['age-secret-key-', 'age']
const keyBytes = 32
/** What precedes the 32 bytes of a key in PKCS #8 and SPKI (RFC 8410). */
const privateHead = Buffer.from('302e020100300506032b656e04220420', 'hex')
const publicHead = Buffer.from('302a300506032b656e032100', 'hex')

export function newAgeIdentity(): AgeIdentity {
  const { privateKey } = generateKeyPairSync('x25519')
  return identityOf(privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(-keyBytes))
}

/** The private keys in a file as `age-keygen` writes it, with comments. Throws with the number of a line that is not a key. */
export function ageIdentities(text: string): readonly AgeIdentity[] {
  return text.split('\n').flatMap((line, index) => {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('#')) return []
    const secret = fromBech32(secretPrefix, trimmed)
    if (secret?.length !== keyBytes) throw new Error(`line ${index + 1} is not a key of age (AGE-SECRET-KEY-1…)`)
    return [identityOf(secret)]
  })
}

/** As `age-keygen` writes it. */
export function identityFile({ text, recipient }: AgeIdentity, created: string): string {
  return `# created: ${created}\n# public key: ${recipient}\n${text}\n`
}

/** The 32 bytes of `age1…`; undefined: it is not one. */
export function recipientBytes(recipient: string): Buffer | undefined {
  const bytes = fromBech32(publicPrefix, recipient)
  return bytes?.length === keyBytes ? bytes : undefined
}

/** What both ends compute, each with its own private key. Throws where the public key is of low order. */
export function sharedSecret(secret: Uint8Array, theirs: Uint8Array): Buffer {
  return diffieHellman({ privateKey: privateKeyOf(secret), publicKey: publicKeyOf(theirs) })
}

export function publicBytes(secret: Uint8Array): Buffer {
  return createPublicKey(privateKeyOf(secret)).export({ type: 'spki', format: 'der' }).subarray(-keyBytes)
}

export function derivedKey(secret: Uint8Array, salt: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, purpose, keyBytes))
}

function identityOf(secret: Buffer): AgeIdentity {
  const text = bech32(secretPrefix, secret).toUpperCase()
  return { text, recipient: bech32(publicPrefix, publicBytes(secret)), secret }
}

function privateKeyOf(secret: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([privateHead, secret]), format: 'der', type: 'pkcs8' })
}

function publicKeyOf(bytes: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([publicHead, bytes]), format: 'der', type: 'spki' })
}
