/** Backups of a controller: made of a running one or of one that is stopped, and brought back. */
import { constants } from 'node:fs'
import {
  access,
  chmod,
  copyFile,
  lchown,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { ConfigMap } from '../../api/config-map.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import { storyOf } from '../../daemon/log.ts'
import { type Backup, hadNoNodes, readBackup, revocationsInStore, unsealBackup } from '../store/sqlite/sqlite-backup.ts'
import type { AuthorityFiles, BackUp } from '../store/store.ts'
import { type Unlocking, unlockBackup } from './backup-secrets.ts'
import { authorityFolderName, secretsKeyName, storeFileName } from './data-directory.ts'

/** While it is there a restore is under way, or was broken off: a controller must not start. */
const restoringName = 'restoring'

export type BackupSource = {
  readonly dataDir: string
  /** Writes a copy of the store. */
  readonly backUp: BackUp
  /** RFC 3339 */
  readonly now: string
  readonly version: string
}

/** A sealed backup in a file of the data directory, for its owner only. The caller removes it. */
export async function makeBackup({ dataDir, backUp, now, version }: BackupSource, name: string): Promise<string> {
  const path = join(dataDir, `backup-${name}.${process.pid}.new`) // with the authority's key in it: removed at the next start
  await rm(path, { force: true })
  await backUp(path, { made: now, version, authority: () => authorityFiles(join(dataDir, authorityFolderName)) })
  return path
}

/** Read until two passes agree: a rollover that is under way moves one file after the other. */
export async function authorityFiles(folder: string): Promise<AuthorityFiles> {
  const look = async (): Promise<AuthorityFiles> => {
    const entries = await readdir(folder, { withFileTypes: true })
    const names = entries.filter((entry) => entry.isFile() && !entry.name.endsWith('.new')).map(({ name }) => name)
    return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)))
  }
  let before = await look()
  for (let tries = 10; tries > 0; tries--) {
    const now = await look()
    if (isDeepStrictEqual(now, before)) return now
    before = now
  }
  throw new Error(`The files in ${folder} keep changing`)
}

/** Why no controller may start on this directory now; undefined when it may. */
export async function unfinishedRestore(dataDir: string): Promise<string | undefined> {
  if (!(await isThere(join(dataDir, restoringName)))) return undefined
  return `A restore into ${dataDir} was interrupted: run it again ('bramble-controller restore FILE --replace')`
}

export type Restored = {
  readonly backup: Backup
  /** Where what was there before is now. */
  readonly aside?: string
  /**
   * Whether the revocations of the store that was there before are still in force, or why they could not be read; undefined:
   * there was none, or it had no node yet.
   */
  readonly revocations?: 'kept' | { readonly unreadable: string }
  /** What was there before had nodes, and was signed for by another authority. */
  readonly otherAuthority: boolean
}

/** A store in etcd that a backup is restored into. */
export type EtcdTarget = {
  /**
   * Copies the objects of the file `store`, whose keys of Secrets are in `secretsKeyFile` or are made there. Calls `finish` when they are
   * there and verified; no controller starts before that has resolved.
   */
  readonly copy: (store: string, secretsKeyFile: string, finish: () => Promise<void>) => Promise<unknown>
  /** Entries of the data directory that its settings name: they stay where they are. */
  readonly keep: readonly string[]
}

/**
 * Puts a backup in the place of what is in the data directory, which is moved aside and not removed. Broken off at any
 * moment it can be run again. Throws when the backup is not whole, or when something is there and `replace` is not set.
 * `etcd`: where its objects go; undefined: into the data directory.
 */
export async function restore(
  file: string,
  dataDir: string,
  replace: boolean,
  now: string,
  unlocking: Unlocking = {},
  etcd?: EtcdTarget,
): Promise<Restored> {
  await access(file, constants.R_OK) // SQLite's error does not name the file
  const backup = readBackup(file)
  const { authority, secretsKey } = await unlockBackup(file, backup, unlocking, [dataDir, ...(await asidesIn(dataDir))])
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const brokenOff = await isThere(join(dataDir, restoringName))
  const before = await revocationsBefore(dataDir, brokenOff)
  const otherAuthority =
    !before.isUnused && (await isOther(join(dataDir, authorityFolderName, 'ca.crt'), backup.authority.get('ca.crt')))
  const stays = (name: string) => name === restoringName || name.startsWith('replaced-') || etcd?.keep.includes(name)
  const present = (await readdir(dataDir)).filter((name) => !stays(name))
  if (present.length > 0 && !replace) {
    throw new Error(
      `There is the state of a controller in ${dataDir} already (${present.slice(0, 5).join(', ')}): give --replace to move it aside, or another --data-dir`,
    )
  }
  const restoring = join(dataDir, restoringName)
  if (brokenOff) await rm(restoring, { recursive: true })
  await saveAuthority(restoring, authority)
  if (secretsKey !== undefined) await replaceFile(join(restoring, secretsKeyName), secretsKey)
  const store = join(restoring, storeFileName)
  await copyFile(file, store, constants.COPYFILE_EXCL)
  await chmod(store, 0o600)
  unsealBackup(store, before.lists, unlocking)
  await flush(store)

  const aside = join(dataDir, `replaced-${now.replaceAll(':', '')}`)
  const restored = [authorityFolderName, secretsKeyName, ...(etcd === undefined ? [storeFileName] : [])]
  let isPlacing = false
  const place = async () => {
    isPlacing = true
    if (present.length > 0) await mkdir(aside, { recursive: true, mode: 0o700 })
    for (const name of present) await rename(join(dataDir, name), join(aside, name))
    const made = await readdir(restoring)
    for (const name of restored.filter((one) => made.includes(one)))
      await rename(join(restoring, name), join(dataDir, name))
    await giveToOwner(dataDir)
    await rm(restoring, { recursive: true })
    await flush(dataDir)
  }
  try {
    if (etcd === undefined) await place()
    else await etcd.copy(store, join(restoring, secretsKeyName), place)
  } catch (error) {
    // Nothing was changed here: the controller may start as before.
    if (!isPlacing && !brokenOff) await rm(restoring, { recursive: true })
    throw error
  }
  const found = { ...(present.length > 0 && { aside }), ...(before.found && { revocations: before.found }) }
  return { backup, otherAuthority, ...found }
}

async function saveAuthority(directory: string, files: AuthorityFiles): Promise<void> {
  const folder = join(directory, authorityFolderName)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const [name, body] of files) await replaceFile(join(folder, name), body, name.endsWith('.crt') ? 0o644 : 0o600)
}

/** Where restores that were broken off may have moved what was there. */
async function asidesIn(dataDir: string): Promise<readonly string[]> {
  if (!(await isThere(join(dataDir, restoringName)))) return []
  return (await readdir(dataDir)).filter((name) => name.startsWith('replaced-')).map((name) => join(dataDir, name))
}

async function isOther(path: string, content: Uint8Array = new Uint8Array()): Promise<boolean> {
  const present = await readFile(path).catch(() => undefined)
  return present !== undefined && !present.equals(content)
}

type RevocationsBefore = {
  readonly lists: readonly ConfigMap[]
  readonly found?: Restored['revocations']
  /** There is a store, and it is one that a fresh controller made: it had no node. Its authority has signed for no node either. */
  readonly isUnused: boolean
}

/** Revocations since the backup: only the store that it replaces has them. Read before the names of the files. */
async function revocationsBefore(dataDir: string, brokenOff: boolean): Promise<RevocationsBefore> {
  // A restore that was broken off may have moved that store aside already.
  const asides = brokenOff ? (await readdir(dataDir)).filter((name) => name.startsWith('replaced-')) : []
  const lists: ConfigMap[] = []
  let found: Restored['revocations']
  let isUnused = false
  for (const folder of ['.', ...asides]) {
    const store = join(dataDir, folder, storeFileName)
    if (!(await isThere(store))) continue
    try {
      lists.push(...revocationsInStore(store))
      if (hadNoNodes(store)) isUnused = true
      else found ??= 'kept'
    } catch (error) {
      found = { unreadable: `${store}: ${storyOf(error)}` }
    }
  }
  return { lists, isUnused: isUnused && found === undefined, ...(found && { found }) }
}

/** Writes a backup to its final path: complete and verified, or not at all. Throws when the path exists. */
export async function keepBackup(content: AsyncIterable<Uint8Array>, target: string): Promise<Backup> {
  const part = `${target}.part`
  try {
    await rm(part, { force: true })
    const file = await open(part, 'wx', 0o600) // never into a file, or through a link, that another user created
    try {
      for await (const piece of content) await file.write(piece)
      await file.sync()
    } finally {
      await file.close()
    }
    const backup = readBackup(part)
    if (await isThere(target)) throw new Error(`${target} exists: give another name, or remove it`)
    await rename(part, target)
    await flush(dirname(target))
    return backup
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

/** Syncs a file, or the names in a folder. */
export async function flush(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** What root has made in the data directory becomes its owner's: the packaged controller runs without root. */
export async function giveToOwner(dataDir: string): Promise<void> {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = await stat(dataDir)
  for await (const path of pathsIn(dataDir)) {
    const has = await lstat(path).catch(() => undefined) // a running controller's files come and go
    if (has?.uid === 0 && uid !== 0) await lchown(path, uid, gid)
  }
}

/** Links are not followed: what they lead to is not the controller's. */
async function* pathsIn(folder: string): AsyncGenerator<string> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    yield path
    if (entry.isDirectory()) yield* pathsIn(path)
  }
}

export async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
