/** The file of the keys that encrypt Secrets, readable by its owner only. */
import { chmod, readFile, stat } from 'node:fs/promises'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { SecretsKeyError } from '../store.ts'
import { formatSecretKeys, parseSecretKeys, type SecretKeys } from './secret-keys.ts'

/** Undefined: there is no such file. Rejects with SecretsKeyError when it is not a key file. */
export async function readSecretKeys(path: string): Promise<SecretKeys | undefined> {
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined
    throw new SecretsKeyError(`Cannot read the keys of Secrets in ${path}`, { cause })
  })
  if (text === undefined) return undefined
  if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600)
  const keys = parseSecretKeys(text)
  if (keys === undefined) {
    throw new SecretsKeyError(
      `There are no keys of Secrets in ${path}: it must have one key of 32 bytes in base64 on each line. Restore it from a copy`,
    )
  }
  return keys
}

/** Durable when it resolves: what the keys encrypt can be read after a power cut. */
export async function writeSecretKeys(path: string, keys: SecretKeys): Promise<void> {
  await replaceFile(path, formatSecretKeys(keys), 0o600)
}
