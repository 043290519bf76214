/**
 * The keys of service account tokens, in the authority's folder, which backups contain: the one that signs, and the one before
 * it, whose tokens stay good until it is removed.
 */
import { createPrivateKey } from 'node:crypto'
import { chmod, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { newKey, privateKeyPem } from '../../certs/authority.ts'
import { createOnce, readIfThere } from '../../certs/files.ts'
import { syncFolder } from '../../daemon/durable-file.ts'
import { type SigningKey, signingKey } from '../apiserver/authentication/tokens/json-web-token.ts'
import type { TokenKeys } from '../apiserver/authentication/tokens/service-account-tokens.ts'

const signingName = 'service-account.key'
const previousName = 'service-account.previous.key'

/** The keys in `folder`; the one that signs is made where there is none. Rejects with the file that is not a key. */
export async function openTokenKeys(folder: string): Promise<TokenKeys> {
  const path = join(folder, signingName)
  if ((await keyIn(path)) === undefined) await createOnce(path, privateKeyPem(newKey()), 0o600)
  const keys = await readTokenKeys(folder)
  if (keys === undefined) throw new Error(`There is no private key in ${path}`)
  return keys
}

/** undefined: no key signs. */
export async function readTokenKeys(folder: string): Promise<TokenKeys | undefined> {
  const [signing, previous] = [await keyIn(join(folder, signingName)), await keyIn(join(folder, previousName))]
  return signing && { signing, others: previous === undefined ? [] : [previous] }
}

/** Makes another key that signs, and keeps the present one. Rejects while there is one from before it. */
export async function rotateTokenKey(folder: string): Promise<TokenKeys> {
  const [path, previous] = [join(folder, signingName), join(folder, previousName)]
  const present = await keyIn(path)
  if (present === undefined) throw new Error(`There is no key in ${path} yet: start the controller first`)
  if ((await keyIn(previous)) !== undefined) {
    throw new Error(
      'Cannot rotate: the previous key is still trusted. Remove it with "service-account-key finish" first',
    )
  }
  await rename(path, previous) // a controller that is stopped here makes the next key at its start
  await syncFolder(folder)
  return openTokenKeys(folder)
}

/** Tokens that the previous key has signed are invalid from then on. False: there was none. */
export async function removePreviousTokenKey(folder: string): Promise<boolean> {
  const previous = join(folder, previousName)
  if ((await readIfThere(previous)) === undefined) return false
  await rm(previous)
  await syncFolder(folder)
  return true
}

async function keyIn(path: string): Promise<SigningKey | undefined> {
  const pem = await readIfThere(path)
  if (pem === undefined) return undefined
  if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600)
  try {
    return signingKey(createPrivateKey(pem))
  } catch (cause) {
    throw new Error(
      `There is no private key of the curve P-256 in ${path}: restore it from a backup, or remove the file`,
      { cause },
    )
  }
}
