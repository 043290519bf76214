/**
 * A backup of a store in etcd: every object at one revision, in the same kind of file as a backup of SQLite. It only reads etcd, and
 * needs no lease on the store, so controllers run meanwhile.
 */
import { closeSync, openSync } from 'node:fs'
import { type ConfigMap, ConfigMapSchema } from '../../../api/config-map.ts'
import { decode } from '../../../api/decode.ts'
import { parseJson } from '../../../api/text/json.ts'
import type { SecretKeys } from '../encryption/secret-keys.ts'
import { readSecretKeys } from '../encryption/secret-keys-file.ts'
import type { EtcdClient } from '../etcd/etcd-client.ts'
import { connectEtcd } from '../etcd/etcd-connection.ts'
import { isCompacted, maySucceedElsewhere } from '../etcd/etcd-error.ts'
import { type EtcdKeys, etcdKeys } from '../etcd/etcd-keys.ts'
import { methods } from '../etcd/etcd-messages.ts'
import { migrationMark, readOrigin } from '../etcd/etcd-origin.ts'
import { etcdValues } from '../etcd/etcd-values.ts'
import { sealBackup } from '../sqlite/sqlite-backup.ts'
import { openSqliteFile } from '../sqlite/sqlite-file.ts'
import { type BackupContents, type ObjectKey, SecretsKeyError } from '../store.ts'
import type { OwnedPrefixNeeds } from './owned-prefix.ts'
import { copyToFile, removeDatabase } from './store-copy.ts'

export type EtcdBackupNeeds = OwnedPrefixNeeds & {
  /** Key file of a controller of the fleet. */
  readonly secretsKeyFile: string
  /** The ConfigMap that names the authorities of the fleet. */
  readonly clusterInfoKey: ObjectKey
  /** Rejects where the authority that goes into the backup is not that of the fleet. */
  readonly checkAuthority: (clusterInfo: ConfigMap | undefined) => Promise<void>
}

const attempts = 3

/**
 * Writes a backup to a new file with mode 0600, and resolves with the revision of its objects. Where etcd compacted it while it was
 * read, or a member went away, it begins again. Rejects where the prefix has no store, with SecretsKeyError, and with an error that has
 * a remedy; there is no file then.
 */
export async function backUpEtcd(needs: EtcdBackupNeeds, path: string, contents: BackupContents): Promise<number> {
  const client = await connectEtcd(needs.place, needs)
  try {
    const revision = await untilWhole(needs, client, path)
    sealBackup(path, contents.made, contents.version, await contents.authority())
    return revision
  } catch (error) {
    await removeDatabase(path)
    throw error
  } finally {
    client.close()
  }
}

async function untilWhole(needs: EtcdBackupNeeds, client: EtcdClient, path: string): Promise<number> {
  const { place, secretsKeyFile, log, signal } = needs
  for (let attempt = 1; ; attempt++) {
    const secretKeys = await readSecretKeys(secretsKeyFile)
    try {
      return await copied(needs, client, path, secretKeys)
    } catch (cause) {
      const mayEnd = isCompacted(cause) || maySucceedElsewhere(cause)
      const isRotated =
        cause instanceof SecretsKeyError && idsOf(await readSecretKeys(secretsKeyFile)) !== idsOf(secretKeys)
      if (signal?.aborted || !(mayEnd || isRotated)) throw cause
      if (attempt === attempts) {
        const what = `Cannot back up ${place.prefix} in etcd after ${attempts} attempts`
        throw new Error(`${what}: ${remedyFor(cause)}`, { cause })
      }
      await removeDatabase(path)
      log.warn('The backup begins again', { attempt, error: cause })
    }
  }
}

/** One attempt. */
async function copied(
  { place, secretsKeyFile, clusterInfoKey, checkAuthority, signal }: EtcdBackupNeeds,
  client: EtcdClient,
  path: string,
  secretKeys: SecretKeys | undefined,
): Promise<number> {
  const keys = etcdKeys(place.prefix)
  await checkSecretsKey(client, keys, secretsKeyFile, secretKeys)
  closeSync(openSync(path, 'wx', 0o600))
  const file = openSqliteFile(path)
  let revision: number
  try {
    const values = etcdValues()
    if (secretKeys !== undefined) {
      file.sealed.use(secretKeys)
      values.use(secretKeys)
    }
    revision = (await copyToFile({ client, keys, values }, file, signal)).revision
  } finally {
    file.close()
  }
  const mark = await migrationMark(client, keys, revision)
  if (mark !== undefined) throw new Error(mark.message)
  if ((await readOrigin(client, keys, revision)) === undefined) {
    throw new Error(`There is no store below ${place.prefix} in etcd: check --etcd-prefix (etcdPrefix)`)
  }
  await checkAuthority(await configMapAt(client, keys, clusterInfoKey, revision))
  return revision
}

/** Before anything is read: a data directory of another fleet has other keys. */
async function checkSecretsKey(
  client: EtcdClient,
  { secretsKey: key, prefix }: EtcdKeys,
  path: string,
  secretKeys: SecretKeys | undefined,
): Promise<void> {
  const { kvs } = await client.call(methods.range, { key, limit: 1 })
  const id = kvs[0]?.value.toString()
  if (id === undefined || secretKeys?.some((one) => one.id === id)) return
  throw new SecretsKeyError(
    `Secrets below ${prefix} in etcd are encrypted with key ${id}, which is not in ${path}: copy secrets.key of another controller to it, or name the directory of a controller of this fleet with --data-dir`,
  )
}

async function configMapAt(client: EtcdClient, keys: EtcdKeys, key: ObjectKey, revision: number) {
  const { kvs } = await client.call(methods.range, {
    key: keys.of({ resource: 'configmaps', ...key }),
    limit: 1,
    revision,
  })
  const decoded = decode(ConfigMapSchema, parseJson(kvs[0]?.value.toString('utf8') ?? ''))
  return decoded.ok ? decoded.value : undefined
}

function idsOf(keys: SecretKeys | undefined): string {
  return (keys ?? []).map(({ id }) => id).join(' ')
}

function remedyFor(cause: unknown): string {
  if (isCompacted(cause)) {
    return 'etcd compacted the revision while it was read. Set a longer --auto-compaction-retention in etcd, or make the backup when the machine is less busy'
  }
  if (cause instanceof SecretsKeyError) {
    return 'the key of Secrets is being replaced. Run the backup again when that has finished'
  }
  return 'members of etcd went away. Run the backup again when a majority of them runs'
}
