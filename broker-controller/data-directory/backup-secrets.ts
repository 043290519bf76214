/** The keys of Secrets in backups: encrypted with a passphrase into one, and found again for one that is restored. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openFiles, sealFiles, shortestPassphrase } from '../store/encryption/passphrase.ts'
import { formatSecretKeys, parseSecretKeys } from '../store/encryption/secret-keys.ts'
import { readSecretKeys } from '../store/encryption/secret-keys-file.ts'
import { type Backup, readBackup, replaceAuthority } from '../store/sqlite/sqlite-backup.ts'
import type { AuthorityFiles } from '../store/store.ts'
import { secretsKeyName } from './data-directory.ts'

/** What restoring a backup may need that is not in it. */
export type Unlocking = {
  readonly passphrase?: string | undefined
  /** A copy of the file of keys. */
  readonly secretsKey?: string | undefined
  /** Leave Secrets out. */
  readonly withoutSecrets?: boolean
}

/** The first line of the file. */
export async function readPassphrase(path: string): Promise<string> {
  const text = await readFile(path === '-' ? '/dev/stdin' : path, 'utf8').catch((cause: unknown) => {
    throw new Error(`Cannot read the passphrase in ${path}`, { cause })
  })
  const [passphrase = ''] = text.split(/\r?\n/)
  if (passphrase.length >= shortestPassphrase) return passphrase
  throw new Error(
    `The passphrase in ${path} has ${passphrase.length} characters: its first line must have ${shortestPassphrase} or more`,
  )
}

/** Adds the keys of Secrets to a backup in a file of the data directory, and encrypts all its private keys. */
export async function lockBackup(path: string, dataDir: string, passphrase: string): Promise<void> {
  const { authority, secretsKeyIDs } = readBackup(path)
  const keyFile = join(dataDir, secretsKeyName)
  const keys = await readSecretKeys(keyFile)
  const missing = secretsKeyIDs.filter((id) => !keys?.some((key) => key.id === id))
  if (missing.length > 0) {
    throw new Error(
      `The backup needs key ${missing.join(', ')} of Secrets, which is no longer in ${keyFile}: repeat the backup`,
    )
  }
  const all = keys ? new Map([...authority, [secretsKeyName, Buffer.from(formatSecretKeys(keys))]]) : authority
  const { files, parameters } = await sealFiles(all, passphrase)
  replaceAuthority(path, files, parameters)
}

export type Unlocked = {
  readonly authority: AuthorityFiles
  /** The file of keys that opens its Secrets; undefined: they need none, or are left out. */
  readonly secretsKey?: Uint8Array
}

/** `folders`: where a file of keys may be already. Rejects when a key is missing, before anything is changed. */
export async function unlockBackup(
  file: string,
  { authority: stored, passphrase: parameters, secretsKeyIDs }: Backup,
  { passphrase, secretsKey, withoutSecrets = false }: Unlocking,
  folders: readonly string[],
): Promise<Unlocked> {
  if (parameters !== undefined && passphrase === undefined) {
    throw new Error(`The private keys in ${file} are encrypted: give --passphrase-file`)
  }
  const opened = parameters === undefined ? stored : await openFiles(stored, passphrase ?? '', parameters)
  const { [secretsKeyName]: ownKeys, ...others } = Object.fromEntries(opened)
  const authority = new Map(Object.entries(others))
  if (withoutSecrets || secretsKeyIDs.length === 0) return { authority }
  const fits = (text: string | undefined) => {
    const keys = text === undefined ? undefined : parseSecretKeys(text)
    return secretsKeyIDs.every((id) => keys?.some((key) => key.id === id))
  }
  const candidates = secretsKey === undefined ? folders.map((folder) => join(folder, secretsKeyName)) : [secretsKey]
  const texts = [
    ...(ownKeys === undefined ? [] : [Buffer.from(ownKeys).toString('utf8')]),
    ...(await Promise.all(candidates.map((path) => readFile(path, 'utf8').catch(() => undefined)))),
  ]
  const found = texts.find(fits)
  if (found !== undefined) return { authority, secretsKey: Buffer.from(found) }
  throw new Error(
    `Secrets in ${file} are encrypted with key ${secretsKeyIDs.join(', ')}, which is not in ${candidates.join(' or ')}: give --secrets-key with a copy of that file, or --without-secrets to restore everything else`,
  )
}
