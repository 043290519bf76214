/** All objects of a store in etcd copied to a file of SQLite, or the other way; each copy is read again and compared. */
import { rm } from 'node:fs/promises'
import { newSecretKey, type SecretKeys } from '../encryption/secret-keys.ts'
import { readSecretKeys, writeSecretKeys } from '../encryption/secret-keys-file.ts'
import type { EtcdClient } from '../etcd/etcd-client.ts'
import {
  bodyWithoutVersion,
  type CopiedObject,
  type CopySummary,
  copySummary,
  eachStoredObject,
  putObjects,
  verifyCopy,
} from '../etcd/etcd-copy.ts'
import type { EtcdKeys } from '../etcd/etcd-keys.ts'
import { type Compare, methods } from '../etcd/etcd-messages.ts'
import type { EtcdValues } from '../etcd/etcd-values.ts'
import type { Row, SqliteFile } from '../sqlite/sqlite-file.ts'
import { SecretsKeyError } from '../store.ts'

/** The objects below a prefix of etcd, and the keys that encrypt Secrets among them. */
export type EtcdObjects = { readonly client: EtcdClient; readonly keys: EtcdKeys; readonly values: EtcdValues }

const rowsAtOnce = 200

/**
 * Copies every object at one revision into the empty file. Only reads etcd, so controllers may run meanwhile. Rejects where the copy is
 * not equal, with EtcdError where the revision was compacted meanwhile, with SecretsKeyError, and when `signal` aborts.
 */
export async function copyToFile(
  { client, keys, values }: EtcdObjects,
  file: SqliteFile,
  signal?: AbortSignal,
): Promise<{ readonly summary: CopySummary; readonly revision: number }> {
  const read = copySummary()
  let rows: Row[] = []
  const flush = () => {
    file.write(rows)
    rows = []
  }
  const revision = await eachStoredObject(client, keys, values, ({ key, body, version }) => {
    signal?.throwIfAborted()
    read.add({ key, body })
    rows.push({ ...key, version, body: withVersionText(body, version) })
    if (rows.length >= rowsAtOnce) flush()
  })
  flush()
  // Leases have versions of their own in etcd: none that a client may have is assigned again.
  file.reserve(Math.max(revision, await reservedLeaseVersion(client, keys)))
  const copied = copySummary()
  for (const object of objectsOf(file)) copied.add(object)
  const summary = read.result()
  verifyCopy(summary, copied.result())
  return { summary, revision }
}

/** Copies every object of the file below the prefix. Rejects as `putObjects`, where the copy is not equal, and when `signal` aborts. */
export async function copyToEtcd(
  { client, keys, values }: EtcdObjects,
  owned: Compare,
  file: SqliteFile,
  signal?: AbortSignal,
): Promise<CopySummary> {
  const read = copySummary()
  await putObjects(client, keys, values, owned, summed(objectsOf(file), read, signal))
  const copied = copySummary()
  await eachStoredObject(client, keys, values, copied.add)
  const summary = read.result()
  verifyCopy(summary, copied.result())
  return summary
}

/** Both stores use the keys of this file, which is made where Secrets were stored plain. Rejects with SecretsKeyError. */
export async function useKeys(secretsKeyFile: string, file: SqliteFile, values: EtcdValues): Promise<void> {
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

/** Removes the file with what SQLite puts beside it. */
export async function removeDatabase(path: string): Promise<void> {
  for (const end of ['', '-journal', '-wal', '-shm']) await rm(`${path}${end}`, { force: true })
}

function* objectsOf(file: SqliteFile): Generator<CopiedObject> {
  for (const { resource, namespace, name, body } of file.rows()) {
    yield { key: { resource, namespace, name }, body: bodyWithoutVersion(body) }
  }
}

function* summed(
  objects: Iterable<CopiedObject>,
  summary: ReturnType<typeof copySummary>,
  signal: AbortSignal | undefined,
): Generator<CopiedObject> {
  for (const object of objects) {
    signal?.throwIfAborted()
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
