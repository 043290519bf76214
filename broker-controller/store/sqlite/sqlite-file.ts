/** The file behind the SQLite store: its tables, their versions, and the few statements. */
import { chmodSync, closeSync, openSync } from 'node:fs'
import Database from 'better-sqlite3'
import { EarlierStoreError, LaterStoreError, StoreInUseError, type StoreOrigin } from '../store.ts'
import { type DiskGuard, isDiskFull } from './disk-guard.ts'
import { plainSecretsStatement, type SealedRows, sealedRows } from './sqlite-secrets.ts'

export type Row = {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly version: number
  /** JSON, which is encrypted in the file where the kind is; null removes the row. */
  readonly body: string | null
}

export interface SqliteFile {
  readonly origin: StoreOrigin
  readonly sealed: SealedRows
  rows(): Iterable<{
    readonly resource: string
    readonly namespace: string
    readonly name: string
    readonly body: string
  }>
  /** Every version up to this one may have been assigned. */
  reserved(): number
  /** Durable when it returns. */
  reserve(version: number): void
  /** All or none; durable when it returns. */
  write(rows: readonly Row[]): void
  /** The bytes of pages that are free for other rows. */
  freePages(): number
  /** A whole and consistent copy of everything, in a new file for its owner only, while others keep writing. */
  copyTo(path: string): Promise<void>
  close(): void
}

/** Each brings a file one version further; the file has the number of those applied. Append, never change. */
const migrations: readonly string[] = [
  `CREATE TABLE objects (
     resource TEXT NOT NULL,
     namespace TEXT NOT NULL,
     name TEXT NOT NULL,
     version INTEGER NOT NULL,
     body TEXT NOT NULL,
     PRIMARY KEY (resource, namespace, name)
   ) STRICT;
   CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
   INSERT INTO counters VALUES ('reservedVersion', 0);`,
  `CREATE TABLE origin (id TEXT NOT NULL, learns INTEGER NOT NULL) STRICT;
   INSERT INTO origin VALUES (lower(hex(randomblob(16))), 0);`,
  plainSecretsStatement, // bodies of Secrets are encrypted at the start, which earlier versions cannot read
]

/**
 * Makes the file a new store that accepts checkpoints of its nodes. The date is in whole seconds, as dates of objects are.
 * The column and the counter have their names from the first versions of the format.
 */
export const acceptCheckpointsStatement = `UPDATE origin SET id = lower(hex(randomblob(16))), learns = 1;
   INSERT OR REPLACE INTO counters VALUES ('learnsSince', unixepoch());`

/** The format of files written by this version; a higher one is of a newer version. */
export const storeFormat = migrations.length

/**
 * The formats that this version can use as they are. A version on trial must not migrate the store: its predecessor may follow it. So a
 * version with a new format lists the one before as well, and uses what is new only where the file has it.
 */
export const usableFormats: readonly number[] = [storeFormat]

/** The format of the store; undefined if there is none, or a controller has it open. Throws if it cannot be read. */
export function storedFormat(path: string): number | undefined {
  let database: Database.Database | undefined
  try {
    database = new Database(path, { readonly: true, fileMustExist: true, timeout: 200 })
    return Number(database.pragma('user_version', { simple: true })) || undefined
  } catch (cause) {
    if (isBusy(cause)) return undefined
    throw unreadable(path, cause)
  } finally {
    database?.close()
  }
}

/**
 * Opens or creates the file, readable by its owner only. An exclusive lock keeps other processes out; it ends with the process.
 * Throws StoreInUseError, LaterStoreError, EarlierStoreError, or another error when it is damaged. `acceptsCheckpointsIfNew`:
 * a new file begins without the objects of a running fleet. `guard`: makes room for a write that finds the disk full. `mayMigrate`:
 * false leaves a file of an earlier format as it is.
 */
export function openSqliteFile(
  path: string,
  { acceptsCheckpointsIfNew = false, guard = noGuard, mayMigrate = true }: SqliteFileOptions = {},
): SqliteFile {
  let database: Database.Database
  try {
    database = guard.write(() => openDatabase(path, { acceptsCheckpointsIfNew, mayMigrate }))
  } catch (cause) {
    if (cause instanceof LaterStoreError || cause instanceof EarlierStoreError) throw cause
    if (isBusy(cause)) throw new StoreInUseError(`${path} is in use by another process`, { cause })
    throw unreadable(path, cause)
  }

  const put = database.prepare<Row>(
    `INSERT INTO objects VALUES (:resource, :namespace, :name, :version, :body)
     ON CONFLICT DO UPDATE SET version = excluded.version, body = excluded.body`,
  )
  const remove = database.prepare<Row>(
    'DELETE FROM objects WHERE resource = :resource AND namespace = :namespace AND name = :name',
  )
  const all = database.prepare<[], StoredRow>('SELECT resource, namespace, name, body FROM objects')
  const counter = database.prepare<[], { value: number }>("SELECT value FROM counters WHERE name = 'reservedVersion'")
  const count = database.prepare<[number]>("UPDATE counters SET value = ? WHERE name = 'reservedVersion'")
  const free = database.prepare<[], { freelist_count: number }>('PRAGMA freelist_count')
  const pageSize = Number(database.pragma('page_size', { simple: true }))
  const write = database.transaction((rows: readonly Row[]) => {
    for (const row of rows) {
      if (row.body === null) remove.run(row)
      else put.run({ ...row, body: sealed.stored(row.resource, row, row.body) })
    }
  })
  const sealed = sealedRows(database, path)

  const origin = database.prepare<[], { id: string; learns: number }>('SELECT id, learns FROM origin').get()
  if (origin === undefined) throw new Error(`${path} has no row in its table origin`)
  const since = database.prepare<[], { value: number }>("SELECT value FROM counters WHERE name = 'learnsSince'").get()

  return {
    origin: { id: origin.id, acceptsCheckpoints: origin.learns !== 0, ...(since && { sinceMs: since.value * 1000 }) },
    sealed,
    *rows() {
      for (const row of all.iterate()) {
        const body = sealed.read(row.resource, row, row.body)
        yield body === row.body ? row : { ...row, body }
      }
    },
    reserved: () => counter.get()?.value ?? 0,
    reserve: (version) => void guard.write(() => count.run(version)),
    write: (rows) => guard.write(() => write.immediate(rows)),
    freePages: () => Number(free.get()?.freelist_count ?? 0) * pageSize,
    async copyTo(target) {
      closeSync(openSync(target, 'wx', 0o600))
      await database.backup(target)
    },
    close: () => void database.close(),
  }
}

type SqliteFileOptions = {
  readonly acceptsCheckpointsIfNew?: boolean
  readonly mayMigrate?: boolean
  readonly guard?: Pick<DiskGuard, 'write'>
}

const noGuard: Pick<DiskGuard, 'write'> = { write: (act) => act() }

type MigrationOptions = { readonly acceptsCheckpointsIfNew: boolean; readonly mayMigrate: boolean }

function openDatabase(path: string, options: MigrationOptions): Database.Database {
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
  const database = new Database(path, { timeout: 1000 })
  try {
    database.pragma('locking_mode = EXCLUSIVE')
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = FULL')
    database.pragma('journal_size_limit = 16777216')
    database.pragma('cache_size = -1024') // KiB: everything is read from memory, the file is read at the start only
    migrate(database, path, options)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

type StoredRow = { readonly resource: string; readonly namespace: string; readonly name: string; readonly body: string }

/** What to do about a store that cannot be read. */
export function unreadable(path: string, cause: unknown): Error {
  const damaged =
    cause instanceof SyntaxError ||
    (cause instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(cause.code))
  if (!damaged) {
    const full = isDiskFull(cause) ? ': its disk is full. Free some MiB on it' : ''
    return new Error(`Cannot open ${path}${full}`, { cause })
  }
  const remedy = `restore a backup ('bramble-controller restore FILE --replace'), or move it away: the controller then creates a store and fills it from the checkpoints of the nodes`
  return new Error(`${path} is damaged: ${remedy}`, { cause })
}

function migrate(
  database: Database.Database,
  path: string,
  { acceptsCheckpointsIfNew, mayMigrate }: MigrationOptions,
): void {
  const had = Number(database.pragma('user_version', { simple: true }))
  if (had > migrations.length) {
    throw new LaterStoreError(
      `${path} was written by a newer version: it has format ${had}, this version reads up to ${migrations.length}. Install that version again, or restore a backup made by this one`,
    )
  }
  // A start writes no more than it must: the disk may be full.
  if (had === migrations.length || (!mayMigrate && usableFormats.includes(had))) return
  if (!mayMigrate && had > 0)
    throw new EarlierStoreError(
      `${path} has format ${had}, and a version on trial does not migrate it: this one uses format ${usableFormats.join(' or ')}. Install a release between them first`,
    )
  const apply = database.transaction(() => {
    for (const migration of migrations.slice(had)) database.exec(migration)
    if (had === 0 && acceptsCheckpointsIfNew) database.exec(acceptCheckpointsStatement)
    database.pragma(`user_version = ${migrations.length}`)
  })
  apply.immediate()
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}
