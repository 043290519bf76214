/** Encryption of the Secrets in a store: its keys at the start, encryption of what is plain, and replacement of the key. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Log } from '../../../daemon/log.ts'
import { type ObjectKey, SecretsKeyError } from '../store.ts'
import { newSecretKey, type SecretKeys } from './secret-keys.ts'
import { readSecretKeys, writeSecretKeys } from './secret-keys-file.ts'

/** The Secrets in a store, as far as their encryption goes. */
export interface SealedSecrets {
  /** The keys that they need. */
  keyIDs(): readonly string[] | Promise<readonly string[]>
  /** Encrypts from now on with the first of these keys, and decrypts with all. */
  use(keys: SecretKeys): void
  /** Encrypts some of those after `after` that the first key did not encrypt; durable then. Undefined: none is left. */
  resealSome(after: ObjectKey): ObjectKey | undefined | Promise<ObjectKey | undefined>
  /** Whether the store may hold plain Secrets from before their encryption. */
  mayHoldPlain(): boolean
  /** Rewrites it without them. */
  removePlain(): void
}

export type ProtectedSecretsNeeds = {
  readonly rows: SealedSecrets
  /** Path of the store, for messages. */
  readonly path: string
  /** Path of the file with the keys. */
  readonly keyFile: string
  readonly log: Log
}

export interface ProtectedSecrets {
  /** Encrypts what is plain, and finishes a rotation that was interrupted. */
  finish(): Promise<void>
  /** Rejects with SecretsKeyError where the store needs a key that is not among those in use. */
  verify(): Promise<void>
  /** Encrypts all Secrets with another key and removes the present one. The ID of the new key. */
  rotateKey(): Promise<string>
}

/**
 * Opens the keys, and makes one for a store that has none. Plain Secrets are encrypted, and a rotation that was interrupted is
 * finished. The key is on the disk before the first body that needs it, and removed after the last one, so an interruption loses
 * nothing. Rejects with SecretsKeyError when a key is missing.
 */
export async function protectSecrets(needs: ProtectedSecretsNeeds): Promise<ProtectedSecrets> {
  const secrets = await openSecrets(needs)
  await secrets.finish()
  return secrets
}

/** The same for a process that may not write yet: Secrets are decrypted from now on, and `finish` is called later. */
export async function openSecrets({ rows, path, keyFile, log }: ProtectedSecretsNeeds): Promise<ProtectedSecrets> {
  let keys = await openKeys(rows, path, keyFile)
  rows.use(keys)
  const resealed = async () => {
    do await resealAll(rows)
    while (keys.length > 1 && (await rows.keyIDs()).some((id) => id !== keys[0].id))
    if (keys.length > 1) await writeSecretKeys(keyFile, [keys[0]])
    keys = [keys[0]]
    rows.use(keys)
  }
  const finish = async () => {
    await resealed()
    if (!rows.mayHoldPlain()) return
    try {
      rows.removePlain()
      log.info('Secrets in the store are encrypted', { key: keys[0].id, keyFile })
    } catch (error) {
      // A full disk: the next start tries again.
      log.warn('Free pages of the store may hold Secrets from before their encryption', { path, error })
    }
  }
  let isRotating = false
  return {
    finish,
    verify: async () => refuseMissing(await rows.keyIDs(), keys, path, keyFile),
    async rotateKey() {
      if (isRotating) throw new Error('Cannot rotate the key of Secrets: a rotation is in progress')
      isRotating = true
      try {
        // A rotation failed before: each further attempt would leave one more key in the file.
        if (keys.length > 1) await resealed()
        const wanted: SecretKeys = [newSecretKey(), ...keys]
        await writeSecretKeys(keyFile, wanted)
        keys = wanted
        rows.use(keys)
        await resealed()
        log.info('Key of Secrets rotated', { key: keys[0].id })
        return keys[0].id
      } finally {
        isRotating = false
      }
    },
  }
}

async function openKeys(rows: SealedSecrets, path: string, keyFile: string): Promise<SecretKeys> {
  const needed = await rows.keyIDs()
  const found = await readSecretKeys(keyFile)
  refuseMissing(needed, found, path, keyFile)
  if (found !== undefined) return found
  const made: SecretKeys = [newSecretKey()]
  await writeSecretKeys(keyFile, made)
  return made
}

function refuseMissing(needed: readonly string[], found: SecretKeys | undefined, path: string, keyFile: string): void {
  const missing = needed.filter((id) => !found?.some((key) => key.id === id))
  if (missing.length === 0) return
  const why = found === undefined ? `${keyFile} does not exist` : `${keyFile} does not contain it`
  throw new SecretsKeyError(
    `Secrets in ${path} are encrypted with key ${missing.join(', ')}, and ${why}. Put a copy of that file back, or restore a backup with its passphrase ('bramble-controller restore FILE --replace --passphrase-file FILE')`,
  )
}

/** Others get their turn between transactions. */
async function resealAll(rows: SealedSecrets): Promise<void> {
  let after: ObjectKey | undefined = { namespace: '', name: '' }
  while (after !== undefined) {
    after = await rows.resealSome(after)
    await nextTurn()
  }
}
