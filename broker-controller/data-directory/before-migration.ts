/** The backup of a store before this version changes its format: with it an earlier version can be brought back. */
import { rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { version } from '../../daemon/process/version.ts'
import { backUpIdleStore, readBackup } from '../store/sqlite/sqlite-backup.ts'
import { storedFormat, storeFormat } from '../store/sqlite/sqlite-file.ts'
import { EarlierStoreError } from '../store/store.ts'
import { flush, makeBackup } from './backup.ts'
import { migrationBackupName, storeFileName } from './data-directory.ts'

export type MigrationBackupNeeds = {
  readonly dataDir: string
  readonly clock: Pick<Clock, 'wallMs'>
  readonly log: Log
  /** Free bytes of the disk. Default: as the system reports it. */
  readonly freeBytes?: () => Promise<number>
}

/**
 * The path of the backup, which was read and verified; it replaces that of an earlier migration. Undefined: the store has the format of
 * this version, or of a later one. Throws EarlierStoreError if there is no room for it: then nothing was changed.
 */
export async function backUpBeforeMigration(needs: MigrationBackupNeeds): Promise<string | undefined> {
  const { dataDir, clock, log, freeBytes = () => freeBytesOf(dataDir) } = needs
  const store = join(dataDir, storeFileName)
  const format = storedFormat(store)
  if (format === undefined || format >= storeFormat) return undefined
  const changed = `${store} from format ${format} to ${storeFormat}`
  // One for the backup, one for what the migration writes.
  const needed = 2 * (await sizeOfStore(store))
  const free = await freeBytes()
  if (free < needed)
    throw new EarlierStoreError(
      `Cannot migrate ${changed}: a backup before it needs ${mebibytes(needed)} MiB, and ${mebibytes(free)} are free. Free space and start again, or install the earlier version`,
    )
  const path = join(dataDir, migrationBackupName)
  const backUp = (target: string, contents: Parameters<typeof backUpIdleStore>[2]) =>
    backUpIdleStore(store, target, contents)
  const made = await makeBackup({ dataDir, backUp, now: rfc3339(clock.wallMs()), version }, 'migration')
  try {
    readBackup(made)
    await flush(made)
    await rename(made, path)
  } catch (cause) {
    await rm(made, { force: true })
    throw new EarlierStoreError(`Cannot migrate ${changed}: the backup before it failed`, { cause })
  }
  await flush(dataDir)
  log.info('Store backed up before its migration', { backup: path, from: format, to: storeFormat })
  return path
}

/** `backup`: made before the migration. */
export function failedMigration(store: string, backup: string, cause: unknown): EarlierStoreError {
  return new EarlierStoreError(
    `${store} could not be migrated to format ${storeFormat}. ${backup} has it as it was: install the earlier version and run 'bramble-controller restore ${backup} --replace', or remove the cause and start again`,
    { cause },
  )
}

async function sizeOfStore(store: string): Promise<number> {
  const sizes = await Promise.all([store, `${store}-wal`].map((path) => stat(path).catch(() => ({ size: 0 }))))
  return sizes.reduce((sum, { size }) => sum + size, 0)
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20)
}
