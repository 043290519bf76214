/** Opens the store of a data directory. Only this file chooses a kind of store. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ResourceRegistry } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { type EtcdSettings, etcdPlace } from '../configuration/etcd-configuration.ts'
import type { StoreLimits } from '../store/room/store-limits.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { type OpenedStore, StoreInUseError } from '../store/store.ts'
import { isThere, unfinishedRestore } from './backup.ts'
import { backUpBeforeMigration, failedMigration } from './before-migration.ts'
import { authorityFolderName, secretsKeyName, storeFileName } from './data-directory.ts'

export const pidFileName = 'controller.pid'

/** Beside the authority: what `store migrate --to etcd` leaves of the file. */
export const migratedStoreName = `${storeFileName}.migrated`

/** Keeps room on the disk for deletions and starts. */
const reserveFileName = 'store.reserve'

export type OpenStoreNeeds = {
  readonly dataDir: string
  /** undefined: the store is a file of the data directory. */
  readonly etcd?: EtcdSettings | undefined
  /** undefined: none is refused for its size. */
  readonly limits?: StoreLimits
  /** The kinds that are stored; undefined: the built-in ones, and all others as they are. */
  readonly resources?: ResourceRegistry
  /** False: this version is on trial, and leaves a file of an earlier format as it is. Default: it is backed up and migrated. */
  readonly mayMigrate?: boolean
  readonly clock: Clock
  readonly log: Log
  /** Ends the wait for a store that is away: opening rejects. */
  readonly signal?: AbortSignal
}

/** The open store also locks the data directory; in etcd, several controllers share it, and one leads. Throws if another controller uses it, and after a restore that was interrupted. */
export async function openStore(needs: OpenStoreNeeds): Promise<OpenedStore> {
  const { dataDir, etcd, limits, clock, log, signal, resources, mayMigrate = true } = needs
  const kinds = resources === undefined ? {} : { resources }
  const path = join(dataDir, storeFileName)
  // An authority without a store: the store was lost, and its nodes have objects that the new one does not have.
  const acceptsCheckpointsIfNew = await isThere(join(dataDir, authorityFolderName, 'ca.key'))
  const unfinished = await unfinishedRestore(dataDir)
  if (unfinished !== undefined) throw new Error(unfinished)
  const reserveFile = join(dataDir, reserveFileName)
  const secretsKeyFile = join(dataDir, secretsKeyName)
  const isFile = await isThere(path)
  if (etcd !== undefined) {
    if (isFile) {
      throw new Error(
        `${path} has the objects of this controller: copy them with 'bramble-controller store migrate --to etcd'. Where a restore made it, repeat that with the settings of etcd ('bramble-controller restore FILE --replace --config FILE'), or move the file away`,
      )
    }
    const { openSharedEtcdStore } = await import('../store/etcd/etcd-store.ts')
    return openSharedEtcdStore({
      ...(await etcdPlace(etcd)),
      ...kinds,
      limits,
      clock,
      log,
      signal,
      acceptsCheckpointsIfNew,
      secretsKeyFile,
    })
  }
  if (!isFile && (await isThere(join(dataDir, migratedStoreName)))) {
    throw new Error(
      `The objects of this controller were moved to etcd: give --etcd-servers, or move them back with 'bramble-controller store migrate --to sqlite'`,
    )
  }
  const backup = isFile && mayMigrate ? await backUpBeforeMigration({ dataDir, clock, log }) : undefined
  try {
    return await openSqliteStore({
      ...kinds,
      path,
      limits,
      mayMigrate,
      clock,
      log,
      acceptsCheckpointsIfNew,
      secretsKeyFile,
      reserveFile,
    })
  } catch (cause) {
    if (!(cause instanceof StoreInUseError)) throw backup === undefined ? cause : failedMigration(path, backup, cause)
    const pid = await readFile(join(dataDir, pidFileName), 'utf8').catch(() => 'unknown')
    throw new Error(`Another controller (pid ${pid.trim()}) uses ${dataDir}`, { cause })
  }
}
