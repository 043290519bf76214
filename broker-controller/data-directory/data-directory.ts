/** The names of what is in the data directory of a controller. */

export const storeFileName = 'store.db'
export const authorityFolderName = 'authority'
/** The keys with which Secrets are encrypted. */
export const secretsKeyName = 'secrets.key'
