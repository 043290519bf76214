/**
 * Files of age (https://age-encryption.org/v1), piece by piece: `age -d -i KEYFILE` reads what is written here. Each 64 KiB are authenticated, with
 * their place and the end: a file that was cut or changed is refused.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type AgeIdentity, derivedKey, publicBytes, recipientBytes, sharedSecret } from './age-keys.ts'

const intro = 'age-encryption.org/v1'
const stanzaKind = 'X25519'
const chunkBytes = 64 * 1024
const tagBytes = 16
const nonceBytes = 16
const fileKeyBytes = 16
/** A file for one key has about 200 bytes of it; others are longer. */
const longestHeader = 16 * 1024
const noSalt = Buffer.alloc(0)

/** The file is damaged, was not encrypted for any of the keys, or is not one of age. Its message is for people. */
export class AgeError extends Error {
  override readonly name = 'AgeError'
}

/** Encrypts the pieces for a recipient (`age1…`). Pieces that are given may be of any size. */
export async function* ageEncrypted(
  pieces: AsyncIterable<Buffer>,
  recipient: string,
  random: (bytes: number) => Buffer = randomBytes,
): AsyncGenerator<Buffer> {
  const fileKey = random(fileKeyBytes)
  yield header(fileKey, recipient, random)
  const nonce = random(nonceBytes)
  yield nonce
  const chunk = chunkCipher(derivedKey(fileKey, nonce, 'payload'))
  let held: Buffer = Buffer.alloc(0)
  for await (const piece of pieces) {
    held = held.length === 0 ? piece : Buffer.concat([held, piece])
    // The last chunk is marked: one that is full waits until more comes.
    while (held.length > chunkBytes) {
      yield chunk.encrypt(held.subarray(0, chunkBytes), false)
      held = held.subarray(chunkBytes)
    }
  }
  yield chunk.encrypt(held, true)
}

/** The text that was encrypted. Throws AgeError; what came before is authentic then, but not all. */
export async function* ageDecrypted(
  pieces: AsyncIterable<Buffer>,
  identities: readonly AgeIdentity[],
): AsyncGenerator<Buffer> {
  let chunk: ReturnType<typeof chunkCipher> | undefined
  let fileKey: Buffer | undefined
  let held: Buffer = Buffer.alloc(0)
  for await (const piece of pieces) {
    held = joined(held, piece)
    if (fileKey === undefined) {
      const found = splitHeader(held)
      if (found === undefined) continue
      fileKey = fileKeyIn(found.text, identities)
      held = held.subarray(found.length)
    }
    if (chunk === undefined && held.length >= nonceBytes) {
      chunk = chunkCipher(derivedKey(fileKey, held.subarray(0, nonceBytes), 'payload'))
      held = held.subarray(nonceBytes)
    }
    while (chunk !== undefined && held.length > chunkBytes + tagBytes) {
      yield chunk.decrypt(held.subarray(0, chunkBytes + tagBytes), false)
      held = held.subarray(chunkBytes + tagBytes)
    }
  }
  if (chunk === undefined) throw new AgeError('the file ends before its data')
  const last = chunk.decrypt(held, true)
  if (last.length === 0 && !chunk.isFirst()) throw new AgeError('the file is damaged: it has an empty end')
  yield last
}

function joined(held: Buffer, piece: Buffer): Buffer {
  return held.length === 0 ? piece : Buffer.concat([held, piece])
}

function header(fileKey: Buffer, recipient: string, random: (bytes: number) => Buffer): Buffer {
  const theirs = recipientBytes(recipient)
  if (theirs === undefined) throw new AgeError(`${JSON.stringify(recipient)} is not a public key of age (age1…)`)
  const ephemeral = random(32)
  const share = publicBytes(ephemeral)
  const key = wrapKey(sharedSecret(ephemeral, theirs), share, theirs)
  const cipher = createCipheriv('chacha20-poly1305', key, Buffer.alloc(12), { authTagLength: tagBytes })
  const wrapped = Buffer.concat([cipher.update(fileKey), cipher.final(), cipher.getAuthTag()])
  const text = `${intro}\n-> ${stanzaKind} ${unpadded(share)}\n${unpadded(wrapped)}\n---`
  return Buffer.from(`${text} ${unpadded(headerMAC(fileKey, text))}\n`)
}

/** undefined: it has not come whole yet. */
function splitHeader(held: Buffer): { readonly text: string; readonly length: number } | undefined {
  const known = `${intro}\n`
  const start = held.subarray(0, known.length).toString('latin1')
  if (!known.startsWith(start)) throw new AgeError('the file is not one of age')
  const mac = held.indexOf('\n---')
  const end = mac === -1 ? -1 : held.indexOf('\n', mac + 1)
  if (end > longestHeader || (end === -1 && held.length > longestHeader)) throw new AgeError('its header is too long')
  return end === -1 ? undefined : { text: held.subarray(0, end + 1).toString('latin1'), length: end + 1 }
}

function fileKeyIn(text: string, identities: readonly AgeIdentity[]): Buffer {
  const [signed = '', mac = ''] = /^([\s\S]*\n---) (\S+)\n$/.exec(text)?.slice(1) ?? []
  if (signed === '') throw new AgeError('the header of the file is damaged')
  for (const [, share = '', body = ''] of signed.matchAll(/^-> X25519 (\S{43})\n(\S{43})\n/gm)) {
    for (const identity of identities) {
      const fileKey = unwrapped(Buffer.from(body, 'base64'), Buffer.from(share, 'base64'), identity)
      if (fileKey === undefined) continue
      // As text: the last character of one in base64 has bits that its value does not depend on.
      const [is, expected] = [Buffer.from(mac), Buffer.from(unpadded(headerMAC(fileKey, signed)))]
      if (is.length !== expected.length || !timingSafeEqual(is, expected))
        throw new AgeError('the header of the file was changed')
      return fileKey
    }
  }
  throw new AgeError('the file was encrypted for another key')
}

function unwrapped(body: Buffer, share: Buffer, { secret }: AgeIdentity): Buffer | undefined {
  try {
    const key = wrapKey(sharedSecret(secret, share), share, publicBytes(secret))
    const decipher = createDecipheriv('chacha20-poly1305', key, Buffer.alloc(12), { authTagLength: tagBytes })
    decipher.setAuthTag(body.subarray(fileKeyBytes))
    return Buffer.concat([decipher.update(body.subarray(0, fileKeyBytes)), decipher.final()])
  } catch {
    // It is for another key, or the share is not a point.
    return undefined
  }
}

function wrapKey(shared: Buffer, share: Buffer, recipient: Buffer): Buffer {
  return derivedKey(shared, Buffer.concat([share, recipient]), `${intro}/${stanzaKind}`)
}

function headerMAC(fileKey: Buffer, text: string): Buffer {
  return createHmac('sha256', derivedKey(fileKey, noSalt, 'header'))
    .update(text, 'latin1')
    .digest()
}

/** STREAM: the nonce has the number of the chunk, and whether it is the last. */
function chunkCipher(key: Buffer) {
  let count = 0
  const nonceOf = (isLast: boolean) => {
    const nonce = Buffer.alloc(12)
    nonce.writeUIntBE(count, 5, 6)
    nonce[11] = isLast ? 1 : 0
    count += 1
    return nonce
  }
  return {
    /** At most one chunk was there. */
    isFirst: () => count <= 1,
    encrypt(text: Buffer, isLast: boolean): Buffer {
      const cipher = createCipheriv('chacha20-poly1305', key, nonceOf(isLast), { authTagLength: tagBytes })
      return Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()])
    },
    decrypt(chunk: Buffer, isLast: boolean): Buffer {
      if (chunk.length < tagBytes) throw new AgeError('the file was cut')
      const decipher = createDecipheriv('chacha20-poly1305', key, nonceOf(isLast), { authTagLength: tagBytes })
      decipher.setAuthTag(chunk.subarray(-tagBytes))
      try {
        return Buffer.concat([decipher.update(chunk.subarray(0, -tagBytes)), decipher.final()])
      } catch (error) {
        throw new AgeError('the file is damaged, or was cut', { cause: error })
      }
    },
  }
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
