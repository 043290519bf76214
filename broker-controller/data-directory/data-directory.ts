/** The names of what is in the data directory of a controller. */

export const storeFileName = 'store.db'
/** A backup of the store from before the last change of its format. */
export const migrationBackupName = 'before-migration.backup'
export const authorityFolderName = 'authority'
/** The keys with which Secrets are encrypted. */
export const secretsKeyName = 'secrets.key'
