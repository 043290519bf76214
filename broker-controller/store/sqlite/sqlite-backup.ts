/**
 * A backup is one file: a copy of the store, with the authority's files and a digest of everything in two tables more.
 * So SQLite's own tools read it, too.
 */
import { createHash, randomUUID } from 'node:crypto'
import { chmodSync, closeSync, openSync } from 'node:fs'
import Database from 'better-sqlite3'
import { type ConfigMap, ConfigMapSchema } from '../../../api/config-map.ts'
import { decode } from '../../../api/decode.ts'
import { problemText } from '../../../api/problem.ts'
import type { PassphraseParameters } from '../encryption/passphrase.ts'
import { revocationsIn, revocationsKey, withAllOf } from '../revocations.ts'
import type { AuthorityFiles, BackupContents } from '../store.ts'
import { acceptCheckpointsStatement, type Row, storeFormat } from './sqlite-file.ts'
import { deleteSecretsStatement, sealedKeyIDs } from './sqlite-secrets.ts'

export type Backup = {
  /** RFC 3339 */
  readonly made: string
  /** Version of the program that made it. */
  readonly version: string
  readonly authority: AuthorityFiles
  /** How many objects there are of each kind. */
  readonly counts: ReadonlyMap<string, number>
  /** The keys that its Secrets need. */
  readonly secretsKeyIDs: readonly string[]
  /** Private keys of `authority` are encrypted with a passphrase, and so are the keys of Secrets, which are among them then. */
  readonly passphrase?: PassphraseParameters
}

/** A backup of a store that no controller has open. Throws if one has, or if the store cannot be read. */
export async function backUpIdleStore(path: string, target: string, contents: BackupContents): Promise<void> {
  const database = new Database(path, { readonly: true, fileMustExist: true, timeout: 1000 })
  try {
    closeSync(openSync(target, 'wx', 0o600))
    await database.backup(target)
  } finally {
    database.close()
  }
  sealBackup(target, contents.made, contents.version, await contents.authority())
}

/** True when no controller has this store open. */
export function isIdle(path: string): boolean {
  const database = new Database(path, { readonly: true, fileMustExist: true, timeout: 200 })
  try {
    database.pragma('user_version')
    return true
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return false
    return true
  } finally {
    database.close()
  }
}

/** Makes a copy of a store a backup. */
export function sealBackup(path: string, made: string, version: string, authority: AuthorityFiles): void {
  const database = new Database(path, { fileMustExist: true })
  try {
    database.pragma('journal_mode = DELETE') // one file, with nothing beside it
    database.exec(
      `CREATE TABLE authority (name TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT;
       CREATE TABLE backup (made TEXT NOT NULL, version TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT;`,
    )
    const put = database.prepare<[string, Uint8Array]>('INSERT INTO authority VALUES (?, ?)')
    for (const [name, body] of authority) put.run(name, body)
    database
      .prepare<[string, string, string]>('INSERT INTO backup VALUES (?, ?, ?)')
      .run(made, version, digest(database))
  } finally {
    database.close()
  }
  chmodSync(path, 0o600)
}

/**
 * Replaces the authority's files of a backup that `readBackup` accepts, without remains of the present ones, and adds what opens
 * them.
 */
export function replaceAuthority(path: string, authority: AuthorityFiles, passphrase: PassphraseParameters): void {
  const database = new Database(path, { fileMustExist: true })
  try {
    const put = database.prepare<[string, Uint8Array]>('INSERT INTO authority VALUES (?, ?)')
    const { salt, cost, blockSize, parallelization } = passphrase
    const replace = database.transaction(() => {
      database.exec(
        `DELETE FROM authority;
         CREATE TABLE passphrase (salt BLOB NOT NULL, cost INTEGER NOT NULL, blockSize INTEGER NOT NULL, parallelization INTEGER NOT NULL) STRICT;`,
      )
      for (const [name, body] of authority) put.run(name, body)
      database
        .prepare<[Uint8Array, number, number, number]>('INSERT INTO passphrase VALUES (?, ?, ?, ?)')
        .run(salt, cost, blockSize, parallelization)
      database.prepare<[string]>('UPDATE backup SET sha256 = ?').run(digest(database))
    })
    replace.immediate()
    database.exec('VACUUM')
  } finally {
    database.close()
  }
}

/** The verified content of the file. Throws when it is not a backup, damaged, or of a newer version. */
export function readBackup(path: string): Backup {
  const database = new Database(path, { readonly: true, fileMustExist: true })
  try {
    return contentOf(database, path)
  } catch (cause) {
    throw new Error(`${path} is not a complete backup of a controller`, { cause })
  } finally {
    database.close()
  }
}

/** The objects of a backup that `readBackup` accepts, and the last version that may be assigned. Secrets are encrypted. */
export function backedUpObjects(path: string): {
  readonly rows: readonly (Row & { readonly body: string })[]
  readonly reserved: number
} {
  const database = new Database(path, { readonly: true, fileMustExist: true })
  try {
    const rows = database.prepare<[], Row & { readonly body: string }>(
      'SELECT resource, namespace, name, version, body FROM objects ORDER BY resource, namespace, name',
    )
    const counter = database.prepare<[], { value: number }>("SELECT value FROM counters WHERE name = 'reservedVersion'")
    return { rows: rows.all(), reserved: counter.get()?.value ?? 0 }
  } finally {
    database.close()
  }
}

/** Versions assigned since the backup must not be assigned again: clients would take old objects for new ones. */
const versionLeap = 1_000_000_000

/** The list of revoked certificates in a store that no controller has open: one, or none. Throws when it cannot be read. */
export function revocationsInStore(path: string): readonly ConfigMap[] {
  const database = new Database(path, { readonly: true, fileMustExist: true, timeout: 1000 })
  try {
    const list = revocationList(database)
    revocationsIn(list)
    return list === undefined ? [] : [list]
  } finally {
    database.close()
  }
}

/**
 * Whether this store, which no controller has open, has had no node yet, as after the installation of a package. Nodes that were
 * deleted are revoked. Throws when it cannot be read.
 */
export function hadNoNodes(path: string): boolean {
  const database = new Database(path, { readonly: true, fileMustExist: true, timeout: 1000 })
  try {
    const node = database.prepare("SELECT 1 FROM objects WHERE resource = 'nodes' LIMIT 1").get()
    return node === undefined && revocationsIn(revocationList(database)).size === 0
  } finally {
    database.close()
  }
}

const revocationsRow = { resource: 'configmaps', ...revocationsKey }

function revocationList(database: Database.Database): ConfigMap | undefined {
  const found = database
    .prepare<typeof revocationsRow, { body: string }>(
      'SELECT body FROM objects WHERE resource = :resource AND namespace = :namespace AND name = :name',
    )
    .get(revocationsRow)
  if (found === undefined) return undefined
  const decoded = decode(ConfigMapSchema, JSON.parse(found.body))
  if (decoded.ok) return decoded.value
  throw new Error(`The list of revoked certificates cannot be read: ${decoded.problems.map(problemText).join(', ')}`)
}

/**
 * Turns a copy of a backup into the store of a controller. It is a new store, which accepts checkpoints for what was created after
 * the backup. Certificates revoked by `revocations` are revoked in it, too. `withoutSecrets`: it has none.
 */
export function unsealBackup(
  path: string,
  revocations: readonly ConfigMap[] = [],
  { withoutSecrets = false }: { readonly withoutSecrets?: boolean } = {},
): void {
  const database = new Database(path, { fileMustExist: true })
  try {
    for (const list of revocations) addRevocations(database, list)
    database.exec(
      `BEGIN IMMEDIATE;
       ${acceptCheckpointsStatement}
       ${deleteWrongDate}
       DROP TABLE authority;
       DROP TABLE backup;
       DROP TABLE IF EXISTS passphrase;
       ${withoutSecrets ? deleteSecretsStatement : ''}
       UPDATE counters SET value = value + ${versionLeap} WHERE name = 'reservedVersion';
       COMMIT;`,
    )
  } finally {
    database.close()
  }
}

/** If the clock is behind the backup, everything that nodes report would count as later than this store. */
const deleteWrongDate =
  "DELETE FROM counters WHERE name = 'learnsSince' AND value < (SELECT unixepoch(made) FROM backup);"

/** With a version that no client has seen. */
function addRevocations(database: Database.Database, list: ConfigMap): void {
  const { value: reserved = 0 } =
    database.prepare<[], { value: number }>("SELECT value FROM counters WHERE name = 'reservedVersion'").get() ?? {}
  const version = reserved + versionLeap
  const present = revocationList(database)
  const all = present === undefined ? list : withAllOf(present, list)
  const metadata = { uid: randomUUID(), ...all.metadata, resourceVersion: String(version) }
  const body = JSON.stringify({ ...all, metadata })
  database
    .prepare('INSERT OR REPLACE INTO objects VALUES (:resource, :namespace, :name, :version, :body)')
    .run({ ...revocationsRow, version, body })
}

function contentOf(database: Database.Database, path: string): Backup {
  const format = Number(database.pragma('user_version', { simple: true }))
  if (format > storeFormat) {
    throw new Error(
      `${path} was written by a newer version: it has format ${format}, this version reads up to ${storeFormat}`,
    )
  }
  const flaw = database.pragma('integrity_check', { simple: true })
  if (flaw !== 'ok') throw new Error(`SQLite finds: ${String(flaw)}`)
  const sealed = database
    .prepare<[], { made: string; version: string; sha256: string }>('SELECT made, version, sha256 FROM backup')
    .get()
  if (sealed === undefined) throw new Error('It was never finished')
  if (digest(database) !== sealed.sha256) throw new Error('The digest does not match the content')
  const files = database.prepare<[], { name: string; body: Uint8Array }>('SELECT name, body FROM authority').all()
  const outside = files.find(({ name }) => !/^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(name))
  if (outside !== undefined) throw new Error(`It has a file of the authority named ${JSON.stringify(outside.name)}`)
  const kinds = database
    .prepare<[], { resource: string; count: number }>(
      'SELECT resource, count(*) AS count FROM objects GROUP BY resource ORDER BY resource',
    )
    .all()
  return {
    made: sealed.made,
    version: sealed.version,
    authority: new Map(files.map(({ name, body }) => [name, body])),
    counts: new Map(kinds.map(({ resource, count }) => [resource, count])),
    secretsKeyIDs: sealedKeyIDs(database),
    ...passphraseOf(database),
  }
}

function passphraseOf(database: Database.Database): Pick<Backup, 'passphrase'> {
  const table = database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'passphrase'").get()
  if (table === undefined) return {}
  const passphrase = database
    .prepare<[], PassphraseParameters>('SELECT salt, cost, blockSize, parallelization FROM passphrase')
    .get()
  if (passphrase === undefined) throw new Error('Its table passphrase is empty')
  return { passphrase }
}

/** Digest of all objects and of the authority. */
function digest(database: Database.Database): string {
  const hash = createHash('sha256')
  const objects = database.prepare<[], { [column: string]: string | number }>(
    'SELECT resource, namespace, name, version, body FROM objects ORDER BY resource, namespace, name',
  )
  for (const row of objects.iterate()) hash.update(JSON.stringify(Object.values(row)))
  const files = database.prepare<[], { name: string; body: Uint8Array }>(
    'SELECT name, body FROM authority ORDER BY name',
  )
  for (const { name, body } of files.iterate()) hash.update(`${name} ${body.length}\n`).update(body)
  return hash.digest('hex')
}
