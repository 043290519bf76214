/**
 * The keys that encrypt Secrets in the store, and the form of an encrypted object: AES-256-GCM with a nonce of its own for each
 * write, and the object's identity as additional data, so that no row can take the place of another.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import type { ObjectKey } from '../store.ts'

export type SecretKey = {
  /** The first 16 hexadecimal digits of a hash of the key: another key has another ID. */
  readonly id: string
  readonly key: Buffer
}

/** The first one encrypts; the others are there until a rotation has finished. Never empty. */
export type SecretKeys = readonly [SecretKey, ...SecretKey[]]

const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const mark = 'enc:aesgcm:v1:'
/** Characters of an encrypted body up to the end of its key's ID. */
export const sealedPrefixLength = mark.length + 16
/** A rotation leaves two; a file with more was not written by this program. */
const mostKeys = 8

/** A key that no other has. */
export function newSecretKey(): SecretKey {
  return secretKey(randomBytes(keyBytes))
}

function secretKey(key: Buffer): SecretKey {
  return { id: createHash('sha256').update('bramble secrets key\n').update(key).digest('hex').slice(0, 16), key }
}

/** The text of a key file: one key a line in base64, first the one that encrypts. */
export function formatSecretKeys(keys: SecretKeys): string {
  return keys.map(({ key }) => `${key.toString('base64')}\n`).join('')
}

/** Undefined: the text is not that of a key file. */
export function parseSecretKeys(text: string): SecretKeys | undefined {
  const lines = text.split('\n').filter((line) => line !== '')
  if (lines.length > mostKeys || !lines.every((line) => /^[A-Za-z0-9+/]{43}=$/.test(line))) return undefined
  const [first, ...others] = lines.map((line) => secretKey(Buffer.from(line, 'base64')))
  return first && [first, ...others]
}

/** The body of an object of `resource` as it is stored. */
export function sealBody({ id, key }: SecretKey, resource: string, object: ObjectKey, body: string): string {
  const sealed = sealBytes(key, identityOf(resource, object), Buffer.from(body))
  return `${mark}${id}:${sealed.toString('base64')}`
}

/** The ID of the key that encrypted this body; undefined: it is not encrypted. */
export function keyIdOf(stored: string): string | undefined {
  return stored.startsWith(mark) ? stored.slice(mark.length, sealedPrefixLength) : undefined
}

/** The prefix of all bodies that this key encrypted. */
export function sealedPrefix(id: string): string {
  return `${mark}${id}`
}

/** The body before it was encrypted. Throws when another key encrypted it, or when it was changed since, or is another object's. */
export function openBody({ key }: SecretKey, resource: string, object: ObjectKey, stored: string): string {
  const sealed = Buffer.from(stored.slice(sealedPrefixLength + 1), 'base64')
  return openBytes(key, identityOf(resource, object), sealed).toString('utf8')
}

/** The same for stores of bytes: what follows the ID of the key is not in base64, which takes a third more. */
export function sealValue({ id, key }: SecretKey, resource: string, object: ObjectKey, body: string): Buffer {
  return Buffer.concat([Buffer.from(`${mark}${id}:`), sealBytes(key, identityOf(resource, object), Buffer.from(body))])
}

/** The body given to `sealValue`. Throws as `openBody` does. */
export function openValue({ key }: SecretKey, resource: string, object: ObjectKey, value: Buffer): string {
  return openBytes(key, identityOf(resource, object), value.subarray(sealedPrefixLength + 1)).toString('utf8')
}

/** Nonce, tag and encrypted bytes. `identity` is authenticated, and not contained. */
export function sealBytes(key: Uint8Array, identity: string, content: Uint8Array): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(identity))
  const encrypted = Buffer.concat([cipher.update(content), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), encrypted])
}

/** The content given to `sealBytes`. Throws unless key and identity are the same and every byte is unchanged. */
export function openBytes(key: Uint8Array, identity: string, sealed: Uint8Array): Buffer {
  const [nonceEnd, tagEnd] = [nonceBytes, nonceBytes + tagBytes]
  if (sealed.length < tagEnd) throw new Error('It is too short')
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, nonceEnd), { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(identity))
  decipher.setAuthTag(sealed.subarray(nonceEnd, tagEnd))
  return Buffer.concat([decipher.update(sealed.subarray(tagEnd)), decipher.final()])
}

/** Names cannot contain what JSON would have to escape, so two objects never have the same text. */
function identityOf(resource: string, { namespace, name }: ObjectKey): string {
  return JSON.stringify([resource, namespace, name])
}
