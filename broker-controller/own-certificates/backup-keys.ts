/**
 * The keys of backups of volumes: `backup.key` beside the authority of the fleet, a file as age-keygen writes it. The first key encrypts; those of
 * other fleets that a person adds read only.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type BackupManifest, signedManifest } from '../../api/backups/backup-manifest.ts'
import { createOnce, readIfThere } from '../../certs/files.ts'
import { type AgeIdentity, ageIdentities, derivedKey, identityFile, newAgeIdentity } from '../../daemon/age/age-keys.ts'
import { messageOf } from '../../daemon/errors.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'

export const backupKeyName = 'backup.key'
const noSalt = Buffer.alloc(0)

export interface BackupKeys {
  /** For whom this fleet encrypts. */
  readonly recipient: string
  readonly identities: readonly AgeIdentity[]
  /** By the first key. */
  sign(text: string): string
  /** undefined: one of the keys has signed it. Or why it is not believed. */
  problemOf(manifest: BackupManifest): string | undefined
}

/** Makes the file where there is none. Rejects if it has no key. */
export async function openBackupKeys(dataDir: string, created: string): Promise<BackupKeys> {
  const folder = join(dataDir, authorityFolderName)
  const path = join(folder, backupKeyName)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if ((await readIfThere(path)) === undefined) await createOnce(path, identityFile(newAgeIdentity(), created), 0o600)
  try {
    return backupKeys(ageIdentities((await readIfThere(path)) ?? ''))
  } catch (cause) {
    throw new Error(`${path}: ${messageOf(cause)}. Restore it from a backup of the controller`, { cause })
  }
}

export function backupKeys(identities: readonly AgeIdentity[]): BackupKeys {
  const [first] = identities
  if (first === undefined) throw new Error('it has no key')
  const macOf = ({ secret }: AgeIdentity, text: string) =>
    createHmac('sha256', derivedKey(secret, noSalt, 'bramble volume backups'))
      .update(text)
      .digest()
  return {
    recipient: first.recipient,
    identities,
    sign: (text) => macOf(first, text).toString('base64'),
    problemOf(manifest) {
      const own = identities.find(({ recipient }) => recipient === manifest.recipient)
      if (own === undefined)
        return `it was made with another key (${manifest.recipient}): add that key to ${backupKeyName}`
      const [is, expected] = [Buffer.from(manifest.mac, 'base64'), macOf(own, signedManifest(manifest))]
      const isSame = is.length === expected.length && timingSafeEqual(is, expected)
      return isSame ? undefined : 'its manifest was changed after the backup'
    },
  }
}
