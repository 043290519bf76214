/** The private key of this node for WireGuard, in a file that root alone reads. It never leaves the machine. */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { wireguardKeyProblem } from '../../../api/network/wireguard.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { isMissing } from '../../../daemon/errors.ts'

export function wireguardKeyPath(dataDir: string): string {
  return join(dataDir, 'wireguard.key')
}

/** The public key of the one in the file, in base64. Without a file it makes one. Rejects with a remedy where it has no key. */
export async function wireguardPublicKey(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw new Error(`Cannot read ${path}`, { cause: error })
  })
  const written = text?.trim() ?? newKey()
  if (wireguardKeyProblem(written) !== undefined)
    throw new Error(`${path} is not the key of WireGuard: remove it, and restart the agent, which makes another one`)
  if (text === undefined) await replaceFile(path, `${written}\n`, 0o600)
  return publicKeyOf(written)
}

function newKey(): string {
  const { d = '' } = generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' })
  return Buffer.from(d, 'base64url').toString('base64')
}

/** A PKCS #8 key with X25519 (RFC 8410, 7) without its last 32 bytes. */
const pkcs8Start = Buffer.from('302e020100300506032b656e04220420', 'hex')

function publicKeyOf(key: string): string {
  const der = Buffer.concat([pkcs8Start, Buffer.from(key, 'base64')])
  const { x = '' } = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })).export({
    format: 'jwk',
  })
  return Buffer.from(x, 'base64url').toString('base64')
}
