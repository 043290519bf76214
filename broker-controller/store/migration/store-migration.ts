/** Moves all objects between SQLite and etcd, with no controller running: copied, verified, and then out of use where they were. */
import { rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type ConfigMap, ConfigMapSchema } from '../../../api/config-map.ts'
import { decode } from '../../../api/decode.ts'
import { syncFolder } from '../../../daemon/durable-file.ts'
import { acceptsNow, checkpointWindowKey } from '../checkpoints/checkpoint-window.ts'
import type { CopySummary } from '../etcd/etcd-copy.ts'
import { migrationMark, newOrigin, putMigrationMark, putOrigin, readOrigin } from '../etcd/etcd-origin.ts'
import { etcdValues } from '../etcd/etcd-values.ts'
import { openSqliteFile } from '../sqlite/sqlite-file.ts'
import type { StoreOrigin } from '../store.ts'
import { type OwnedPrefixNeeds, prepareEmpty, withOwnedPrefix } from './owned-prefix.ts'
import { copyToEtcd, copyToFile, removeDatabase, useKeys } from './store-copy.ts'

export type MigrationNeeds = OwnedPrefixNeeds & {
  /** Path of the SQLite store. */
  readonly path: string
  /** What it is called when its objects are in etcd. */
  readonly migratedPath: string
  readonly secretsKeyFile: string
}

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
    await useKeys(needs.secretsKeyFile, file, values)
    refuseOpenWindow(file.origin, file.rows())
    wanted = await withOwnedPrefix(needs, async (client, keys, owned) => {
      const remedy = "run 'bramble-controller store migrate --to etcd' again"
      await prepareEmpty(client, keys, owned, `A migration to ${keys.prefix} in etcd was interrupted: ${remedy}`)
      const summary = await copyToEtcd({ client, keys, values }, owned, file)
      await putOrigin(client, keys, owned, newOrigin(false, clock.wallMs()))
      return summary
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
  return withOwnedPrefix(needs, async (client, keys, owned) => {
    const mark = await migrationMark(client, keys)
    const origin = await readOrigin(client, keys)
    if (mark?.state === 'copying' || origin === undefined) {
      throw new Error(mark?.message ?? `There is no store below ${place.prefix} in etcd: check --etcd-prefix`)
    }
    await removeDatabase(part)
    try {
      const file = openSqliteFile(part)
      let wanted: CopySummary
      try {
        await useKeys(needs.secretsKeyFile, file, values)
        wanted = (await copyToFile({ client, keys, values }, file)).summary
        refuseOpenWindow(origin, file.rows())
      } finally {
        file.close()
      }
      await putMigrationMark(client, keys, owned, {
        state: 'moved',
        message: `The objects below ${place.prefix} were moved to SQLite: start without --etcd-servers. Where that has no store, the move was interrupted: run 'bramble-controller store migrate --to sqlite' again. To use etcd again, delete the old copy (etcdctl del --prefix ${place.prefix}/) and migrate`,
      })
      await rename(part, path)
      await syncFolder(dirname(path))
      return wanted
    } finally {
      await removeDatabase(part)
    }
  })
}

type StoredRow = {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly body: string
}

/**
 * Throws while the store accepts checkpoints: it awaits pods that were created since a backup, and marks the certificates that it issues.
 * A store with another identity would stop such pods, or take certificates of newcomers for those of nodes that it awaits.
 */
function refuseOpenWindow(origin: StoreOrigin, rows: Iterable<StoredRow>): void {
  if (!origin.acceptsCheckpoints) return
  const { namespace, name } = checkpointWindowKey
  let map: ConfigMap | undefined
  for (const row of rows) {
    if (row.resource !== 'configmaps' || row.namespace !== namespace || row.name !== name) continue
    const decoded = decode(ConfigMapSchema, JSON.parse(row.body))
    map = decoded.ok ? decoded.value : undefined
  }
  if (!acceptsNow(origin, map)) return
  throw new Error(
    "The store was restored, or made again, and still accepts checkpoints of nodes: start the controller on it until 'bramble-controller checkpoints status' shows that they are no longer accepted, or close it with 'bramble-controller checkpoints close'; then stop the controller and migrate. A backup is restored into etcd at once with 'bramble-controller restore FILE --replace --config FILE'",
  )
}
