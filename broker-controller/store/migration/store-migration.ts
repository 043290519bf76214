/** Moves all objects between SQLite and etcd, with no controller running: copied, verified, and then out of use where they were. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { newSecretKey, type SecretKeys } from '../encryption/secret-keys.ts'
import { readSecretKeys, writeSecretKeys } from '../encryption/secret-keys-file.ts'
import type { EtcdClient } from '../etcd/etcd-client.ts'
import { connectEtcd } from '../etcd/etcd-connection.ts'
import {
  bodyWithoutVersion,
  type CopiedObject,
  type CopySummary,
  copySummary,
  deleteObjects,
  eachStoredObject,
  putObjects,
  verifyCopy,
} from '../etcd/etcd-copy.ts'
import { type EtcdKeys, etcdKeys } from '../etcd/etcd-keys.ts'
import { type Compare, methods } from '../etcd/etcd-messages.ts'
import { migrationMark, newOrigin, putMigrationMark, putOrigin, readOrigin } from '../etcd/etcd-origin.ts'
import type { EtcdPlace } from '../etcd/etcd-place.ts'
import { readRange } from '../etcd/etcd-range.ts'
import { type EtcdValues, etcdValues } from '../etcd/etcd-values.ts'
import { ownerHasEnded, ownProcess } from '../etcd/owner-process.ts'
import { acquireStore, ownedBy } from '../etcd/store-owner.ts'
import { openSqliteFile, type Row, type SqliteFile } from '../sqlite/sqlite-file.ts'
import { SecretsKeyError } from '../store.ts'

export type MigrationNeeds = {
  /** Of the SQLite store. */
  readonly path: string
  /** What it is called when its objects are in etcd. */
  readonly migratedPath: string
  readonly secretsKeyFile: string
  readonly place: EtcdPlace
  readonly clock: Clock
  readonly log: Log
  /** See `EtcdClientNeeds`. */
  readonly deadlineMs?: number | undefined
}

const rowsAtOnce = 200

/**
 * Copies SQLite to etcd. The store in etcd has another identity and does not accept checkpoints. Throws StoreInUseError where a
 * controller runs, SecretsKeyError, and an error where the prefix is in use or the copy is not equal; the file is as it was then.
 */
export async function migrateToEtcd(needs: MigrationNeeds): Promise<CopySummary> {
  const { path, migratedPath, place, clock } = needs
  const file = openSqliteFile(path)
  let wanted: CopySummary
  try {
    const values = etcdValues()
    await useKeys(needs, file, values)
    wanted = await withEtcd(needs, async (client, keys, owned) => {
      await prepareEmpty(client, keys, owned)
      const summary = copySummary()
      await putObjects(client, keys, values, owned, summed(objectsOf(file), summary))
      const copied = copySummary()
      await eachStoredObject(client, keys, values, copied.add)
      verifyCopy(summary.result(), copied.result())
      await putOrigin(client, keys, owned, newOrigin(false, clock.wallMs()))
      return summary.result()
    })
  } finally {
    file.close()
  }
  await rename(path, migratedPath)
  await syncFolder(dirname(path))
  needs.log.info('Objects moved to etcd', { prefix: place.prefix })
  return wanted
}

/**
 * Copies etcd to a new SQLite file; the prefix is then marked as left. Throws StoreInUseError where a controller runs,
 * SecretsKeyError, and an error where the prefix has no store or the copy is not equal.
 */
export async function migrateToSqlite(needs: MigrationNeeds): Promise<CopySummary> {
  const { path, place } = needs
  const part = `${path}.${process.pid}.new`
  const values = etcdValues()
  return withEtcd(needs, async (client, keys, owned) => {
    const mark = await migrationMark(client, keys)
    if (mark?.state === 'copying' || (await readOrigin(client, keys)) === undefined) {
      throw new Error(mark?.message ?? `There is no store below ${place.prefix} in etcd: check --etcd-prefix`)
    }
    await removeFile(part)
    try {
      const wanted = await copyToFile(needs, part, client, keys, values)
      await putMigrationMark(client, keys, owned, {
        state: 'moved',
        message: `The objects below ${place.prefix} were moved to SQLite: start without --etcd-servers. Where that has no store, the move was interrupted: run 'bramble-controller store migrate --to sqlite' again. To use etcd again, delete the old copy (etcdctl del --prefix ${place.prefix}/) and migrate`,
      })
      await rename(part, path)
      await syncFolder(dirname(path))
      return wanted
    } finally {
      await removeFile(part)
    }
  })
}

async function copyToFile(needs: MigrationNeeds, part: string, client: EtcdClient, keys: EtcdKeys, values: EtcdValues) {
  const file = openSqliteFile(part)
  try {
    await useKeys(needs, file, values)
    const summary = copySummary()
    let rows: Row[] = []
    const flush = () => {
      file.write(rows)
      rows = []
    }
    const revision = await eachStoredObject(client, keys, values, ({ key, body, version }) => {
      summary.add({ key, body })
      rows.push({ ...key, version, body: withVersionText(body, version) })
      if (rows.length >= rowsAtOnce) flush()
    })
    flush()
    // Leases have versions of their own in etcd: none that a client may have is assigned again.
    file.reserve(Math.max(revision, await reservedLeaseVersion(client, keys)))
    const copied = copySummary()
    for (const object of objectsOf(file)) copied.add(object)
    verifyCopy(summary.result(), copied.result())
    return summary.result()
  } finally {
    file.close()
  }
}

/** The work with this process as the owner of the prefix: with the condition `owned` on each write, no controller uses it meanwhile. */
async function withEtcd<T>(
  { place, clock, log, deadlineMs }: MigrationNeeds,
  work: (client: EtcdClient, keys: EtcdKeys, owned: Compare) => Promise<T>,
): Promise<T> {
  const client = await connectEtcd(place, { clock, log, deadlineMs })
  try {
    const keys = etcdKeys(place.prefix)
    const owner = await acquireStore({ client, keys, self: ownProcess(), hasEnded: ownerHasEnded, clock, log })
    try {
      return await work(client, keys, ownedBy(owner, place.prefix))
    } finally {
      await owner.release()
    }
  } finally {
    client.close()
  }
}

/** Refuses a prefix with anything in it but what an interrupted copy left, which is deleted. */
async function prepareEmpty(client: EtcdClient, keys: EtcdKeys, owned: Compare): Promise<void> {
  const mark = await migrationMark(client, keys)
  if (mark?.state === 'copying') await deleteObjects(client, keys, owned)
  else {
    let first: Buffer | undefined
    await readRange(client, keys.all, (page) => {
      first ??= page.find(({ key }) => !key.equals(keys.owner) && !key.equals(keys.terms))?.key
    })
    if (first !== undefined) {
      const remedy = `choose another --etcd-prefix, or delete what is there (etcdctl del --prefix ${keys.prefix}/)`
      throw new Error(`${keys.prefix} in etcd is in use, by ${first} among others: ${remedy}`)
    }
  }
  await putMigrationMark(client, keys, owned, {
    state: 'copying',
    message: `A migration to ${keys.prefix} in etcd was interrupted: run 'bramble-controller store migrate --to etcd' again`,
  })
}

/** Both stores use the keys of the file, which stays where it is; it is made where Secrets were stored plain. */
async function useKeys({ secretsKeyFile }: MigrationNeeds, file: SqliteFile, values: EtcdValues): Promise<void> {
  const secretKeys = await readSecretKeys(secretsKeyFile)
  const missing = file.sealed.keyIDs().filter((id) => !secretKeys?.some((key) => key.id === id))
  if (missing.length > 0) {
    throw new SecretsKeyError(
      `Secrets are encrypted with key ${missing.join(', ')}, which is not in ${secretsKeyFile}: put a copy back`,
    )
  }
  const used: SecretKeys = secretKeys ?? [newSecretKey()]
  if (secretKeys === undefined) await writeSecretKeys(secretsKeyFile, used)
  file.sealed.use(used)
  values.use(used)
}

function* objectsOf(file: SqliteFile): Generator<CopiedObject> {
  for (const { resource, namespace, name, body } of file.rows()) {
    yield { key: { resource, namespace, name }, body: bodyWithoutVersion(body) }
  }
}

function* summed(objects: Iterable<CopiedObject>, summary: ReturnType<typeof copySummary>): Generator<CopiedObject> {
  for (const object of objects) {
    summary.add(object)
    yield object
  }
}

function withVersionText(body: string, version: number): string {
  const object: { readonly metadata: object } = JSON.parse(body)
  return JSON.stringify({ ...object, metadata: { ...object.metadata, resourceVersion: String(version) } })
}

async function reservedLeaseVersion(client: EtcdClient, { leaseVersions: key }: EtcdKeys): Promise<number> {
  const { kvs } = await client.call(methods.range, { key, limit: 1 })
  return Number(kvs[0]?.value.toString() ?? 0)
}

async function removeFile(path: string): Promise<void> {
  for (const end of ['', '-wal', '-shm']) await rm(`${path}${end}`, { force: true })
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
