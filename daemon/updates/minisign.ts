/**
 * Signatures of files in the format of minisign (https://jedisct1.github.io/minisign/): Ed25519 over BLAKE2b-512 of the file, and a
 * trusted comment that is signed with it. `minisign -Vm FILE -p KEY` checks the same files.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

/** A public key, and the ID by which a signature names it. */
export type SignatureKey = { readonly id: string; readonly key: KeyObject }

const keyPrefix = Buffer.from('302a300506032b6570032100', 'hex') // SubjectPublicKeyInfo of Ed25519 (RFC 8410) up to the 32 bytes of the key
const longestLine = 1024

/** The second line of a `.pub` file, or the whole file. Undefined if it is not such a key. */
export function readSignatureKey(text: string): SignatureKey | undefined {
  const bytes = bytesOf(text.trim().split('\n').at(-1) ?? '', 42)
  if (bytes?.subarray(0, 2).toString() !== 'Ed') return undefined
  const key = createPublicKey({ key: Buffer.concat([keyPrefix, bytes.subarray(10)]), format: 'der', type: 'spki' })
  return { id: bytes.subarray(2, 10).toString('hex'), key }
}

/** The ID of the key that has made the signature, as it names it. Undefined: the text is not a signature. */
export function signatureKeyID(signature: string): string | undefined {
  const bytes = signature.length > 4 * longestLine ? undefined : bytesOf(signature.split('\n')[1] ?? '', 74)
  return bytes?.subarray(0, 2).toString() === 'ED' ? bytes.subarray(2, 10).toString('hex') : undefined
}

/** The trusted comment if the file is signed with this key. Undefined: it is not, or the text is not a signature. */
export function checkSignature(file: Uint8Array, signature: string, { id, key }: SignatureKey): string | undefined {
  if (signature.length > 4 * longestLine) return undefined
  const [untrusted = '', first = '', comment = '', second = ''] = signature.split('\n')
  const bytes = bytesOf(first, 74)
  const overall = bytesOf(second, 64)
  const prefix = 'trusted comment: '
  if (!untrusted.startsWith('untrusted comment: ') || !comment.startsWith(prefix)) return undefined
  if (bytes === undefined || overall === undefined || signatureKeyID(signature) !== id) return undefined
  const own = bytes.subarray(10)
  const trusted = comment.slice(prefix.length)
  if (!verify(undefined, hashOf(file), key, own)) return undefined
  return verify(undefined, Buffer.concat([own, Buffer.from(trusted)]), key, overall) ? trusted : undefined
}

/** The text of a `.minisig` file. */
export function signFile(file: Uint8Array, privateKey: KeyObject, trusted: string): string {
  const own = sign(undefined, hashOf(file), privateKey)
  const id = keyIDOf(privateKey)
  const overall = sign(undefined, Buffer.concat([own, Buffer.from(trusted)]), privateKey)
  return [
    `untrusted comment: signature of key ${id.toString('hex')}`,
    Buffer.concat([Buffer.from('ED'), id, own]).toString('base64'),
    `trusted comment: ${trusted}`,
    overall.toString('base64'),
    '',
  ].join('\n')
}

/** The text of a `.pub` file. */
export function signatureKeyText(privateKey: KeyObject): string {
  const id = keyIDOf(privateKey)
  const bytes = Buffer.concat([Buffer.from('Ed'), id, rawKeyOf(privateKey)])
  return `untrusted comment: minisign public key ${id.toString('hex')}\n${bytes.toString('base64')}\n`
}

/** minisign draws it at random; ours follows from the key. */
function keyIDOf(privateKey: KeyObject): Buffer {
  return createHash('sha256').update(rawKeyOf(privateKey)).digest().subarray(0, 8)
}

function rawKeyOf(privateKey: KeyObject): Buffer {
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(keyPrefix.length)
}

function hashOf(file: Uint8Array): Buffer {
  return createHash('blake2b512').update(file).digest()
}

function bytesOf(line: string, length: number): Buffer | undefined {
  if (line.length > longestLine || !/^[A-Za-z0-9+/]+=*$/.test(line)) return undefined
  const bytes = Buffer.from(line, 'base64')
  return bytes.length === length ? bytes : undefined
}
