/** Opens the store of a data directory. Only this file chooses a kind of store. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../daemon/clock.ts'
import type { Log } from '../daemon/log.ts'
import { authorityFolderName, isThere, storeFileName, unfinishedRestore } from './commands/backup.ts'
import { secretsKeyName } from './commands/backup-secrets.ts'
import { openSqliteStore } from './store/sqlite/sqlite-store.ts'
import { type OpenedStore, StoreInUseError } from './store/store.ts'

export const pidFileName = 'controller.pid'

export type OpenStoreNeeds = { readonly dataDir: string; readonly clock: Clock; readonly log: Log }

/** The open store also locks the data directory. Throws if another controller uses it, and after a restore that was interrupted. */
export async function openStore({ dataDir, clock, log }: OpenStoreNeeds): Promise<OpenedStore> {
  const path = join(dataDir, storeFileName)
  // An authority without a store: the store was lost, and its nodes have objects that the new one does not have.
  const acceptsCheckpointsIfNew = await isThere(join(dataDir, authorityFolderName, 'ca.key'))
  const unfinished = await unfinishedRestore(dataDir)
  if (unfinished !== undefined) throw new Error(unfinished)
  try {
    const secretsKeyFile = join(dataDir, secretsKeyName)
    return await openSqliteStore({ path, clock, log, acceptsCheckpointsIfNew, secretsKeyFile })
  } catch (cause) {
    if (!(cause instanceof StoreInUseError)) throw cause
    const pid = await readFile(join(dataDir, pidFileName), 'utf8').catch(() => 'unknown')
    throw new Error(`Another controller (pid ${pid.trim()}) uses ${dataDir}`, { cause })
  }
}
