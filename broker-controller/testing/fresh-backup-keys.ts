/** Keys of a fleet that keeps them nowhere. */
import { newAgeIdentity } from '../../daemon/age/age-keys.ts'
import { type BackupKeys, backupKeys } from '../own-certificates/backup-keys.ts'

export function freshBackupKeys(): () => Promise<BackupKeys> {
  const keys = backupKeys([newAgeIdentity()])
  return async () => keys
}
