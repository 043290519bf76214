/** Encrypted bodies in the table of objects: which keys they need, and their encryption with another one. */
import type Database from 'better-sqlite3'
import type { SealedSecrets } from '../encryption/protected-secrets.ts'
import {
  keyIdOf,
  openBody,
  type SecretKeys,
  sealBody,
  sealedPrefix,
  sealedPrefixLength,
} from '../encryption/secret-keys.ts'
import { type ObjectKey, SecretsKeyError } from '../store.ts'

/** The kind whose bodies are encrypted. */
const sealedResource = 'secrets'

/** The Secrets in a database. Each step is one durable transaction, and is over when it returns. */
export interface SealedRows extends SealedSecrets {
  keyIDs(): readonly string[]
  resealSome(after: ObjectKey): ObjectKey | undefined
}

/** How bodies get into the file and out of it. */
export interface BodyCoding {
  stored(resource: string, key: ObjectKey, body: string): string
  read(resource: string, key: ObjectKey, stored: string): string
}

/** The counter that is there as long as pages may hold plain bodies. */
const plainCounter = 'plainSecretPages'
export const plainSecretsStatement = `INSERT OR REPLACE INTO counters VALUES ('${plainCounter}', 1);`
export const deleteSecretsStatement = `DELETE FROM objects WHERE resource = '${sealedResource}';`
/** One transaction at a time: a request waits for this much at most. */
const rowsAtOnce = 200
const charactersAtOnce = 1024 * 1024

/** The keys that the bodies in this database need. */
export function sealedKeyIDs(database: Database.Database): readonly string[] {
  return database
    .prepare<[number, string], { prefix: string }>(
      'SELECT DISTINCT substr(body, 1, ?) AS prefix FROM objects WHERE resource = ?',
    )
    .all(sealedPrefixLength, sealedResource)
    .flatMap(({ prefix }) => keyIdOf(prefix) ?? [])
}

/** Sealed rows of an open file. Until keys are given, bodies are stored as they are. */
export function sealedRows(database: Database.Database, path: string): SealedRows & BodyCoding {
  let keys: SecretKeys | undefined
  const next = database.prepare<[string, string, string, number], Body>(
    `SELECT namespace, name, body FROM objects WHERE resource = ? AND (namespace, name) > (?, ?)
     ORDER BY namespace, name LIMIT ?`,
  )
  const put = database.prepare<[string, string, string, string]>(
    'UPDATE objects SET body = ? WHERE resource = ? AND namespace = ? AND name = ?',
  )
  const stored = (resource: string, key: ObjectKey, body: string) =>
    keys === undefined || resource !== sealedResource ? body : sealBody(keys[0], resource, key, body)
  const read = (resource: string, key: ObjectKey, body: string) => {
    const id = resource === sealedResource ? keyIdOf(body) : undefined
    if (id === undefined) return body
    const found = keys?.find((one) => one.id === id)
    try {
      if (found === undefined) throw new Error(`There is no key ${id}`)
      return openBody(found, resource, key, body)
    } catch (cause) {
      throw new SecretsKeyError(
        `Cannot decrypt Secret ${key.namespace}/${key.name} in ${path} with key ${id}: its row was changed outside of the controller. Restore a backup ('bramble-controller restore FILE --replace'), or delete the row with sqlite3`,
        { cause },
      )
    }
  }
  const resealSome = database.transaction((after: ObjectKey): ObjectKey | undefined => {
    const first = keys?.[0]
    if (first === undefined) return undefined
    const rows = upToLimit(next.iterate(sealedResource, after.namespace, after.name, rowsAtOnce))
    for (const { namespace, name, body } of rows) {
      if (body.startsWith(sealedPrefix(first.id))) continue
      const key = { namespace, name }
      put.run(stored(sealedResource, key, read(sealedResource, key, body)), sealedResource, namespace, name)
    }
    return rows.at(-1)
  })
  return {
    stored,
    read,
    keyIDs: () => sealedKeyIDs(database),
    use(given) {
      keys = given
    },
    resealSome: (after) => resealSome.immediate(after),
    mayHoldPlain: () =>
      database.prepare<[string]>('SELECT 1 FROM counters WHERE name = ?').get(plainCounter) !== undefined,
    removePlain() {
      database.exec('VACUUM')
      database.pragma('wal_checkpoint(TRUNCATE)')
      database.prepare<[string]>('DELETE FROM counters WHERE name = ?').run(plainCounter)
    },
  }
}

type Body = ObjectKey & { readonly body: string }

/** The rows up to a limit of characters, at least one. */
function upToLimit(rows: Iterable<Body>): readonly Body[] {
  const taken: Body[] = []
  let characters = 0
  for (const row of rows) {
    taken.push(row)
    characters += row.body.length
    if (characters >= charactersAtOnce) break
  }
  return taken
}
