/**
 * The embedded store: all objects in memory, and on disk what must outlive the process. Readers and watchers see a change
 * only when it is durable. If it cannot be written, the answer is an error and nothing has changed.
 */
import { builtInResources, type ResourceRegistry, storedName } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { cachedStore } from '../cached-store.ts'
import type { AnyStoredObject } from '../changes.ts'
import { type ProtectedSecrets, protectSecrets } from '../encryption/protected-secrets.ts'
import { frozenFromJSON } from '../frozen/frozen-copy.ts'
import { type ObjectCache, objectCache } from '../object-cache.ts'
import type { StoreLimits } from '../room/store-limits.ts'
import { type BackUp, type OpenedStore, SecretsKeyError } from '../store.ts'
import { diskGuard } from './disk-guard.ts'
import { diskReserve } from './disk-reserve.ts'
import { sealBackup } from './sqlite-backup.ts'
import { openSqliteFile, type SqliteFile, unreadable } from './sqlite-file.ts'
import { sqliteUpkeep } from './sqlite-upkeep.ts'
import { versionCounter } from './version-counter.ts'
import { writeBatches } from './write-batches.ts'

export type SqliteStoreNeeds = {
  readonly path: string
  /** The kinds it stores; undefined: the built-in ones. */
  readonly resources?: ResourceRegistry
  readonly clock: Clock
  readonly log: Log
  /** The longest time that a status or a new event waits to share a transaction. */
  readonly statusDelayMs?: number
  /** Changes of the last minutes that are kept for watches, for each kind: at least this many, at most twice as many. */
  readonly historyLength?: number
  /** A new file begins without the objects of a running fleet: its origin accepts checkpoints. */
  readonly acceptsCheckpointsIfNew?: boolean
  /** The keys that encrypt Secrets; made where there is none. undefined: Secrets are stored as they are. */
  readonly secretsKeyFile?: string
  /** The file that keeps room on the disk. undefined: growth is refused by no lack of room. */
  readonly reserveFile?: string
  /** Free bytes of its disk. Default: as the system reports it. */
  readonly freeBytes?: () => number
  readonly limits?: StoreLimits | undefined
  /** False: a file of an earlier format is left as it is. Default: it is migrated. */
  readonly mayMigrate?: boolean
}

export type SqliteStore = OpenedStore & { readonly backUp: BackUp }

/** Throws StoreInUseError, LaterStoreError, EarlierStoreError, SecretsKeyError, or another error if the file is damaged. */
export async function openSqliteStore(needs: SqliteStoreNeeds): Promise<SqliteStore> {
  const {
    path,
    resources = builtInResources,
    clock,
    log,
    statusDelayMs = 100,
    historyLength,
    secretsKeyFile: keyFile,
  } = needs
  const reserve = needs.reserveFile === undefined ? undefined : diskReserve(needs.reserveFile, needs.freeBytes)
  const guard = reserve && diskGuard({ reserve, clock, log })
  guard?.prepareStart()
  const file = openSqliteFile(path, {
    acceptsCheckpointsIfNew: needs.acceptsCheckpointsIfNew ?? false,
    mayMigrate: needs.mayMigrate ?? true,
    ...(guard && { guard }),
  })
  const versions = versionCounter(file)
  const cache = objectCache({
    resources,
    clock,
    startVersion: versions.last,
    latestVersion: versions.last,
    ...(historyLength !== undefined && { historyLength }),
  })
  let secrets: ProtectedSecrets | undefined
  try {
    if (keyFile !== undefined) secrets = await protectSecrets({ rows: file.sealed, path, keyFile, log })
    load(file, cache, resources, log)
  } catch (cause) {
    file.close()
    throw cause instanceof SecretsKeyError ? cause : unreadable(path, cause)
  }
  const writer = writeBatches({ path, file, guard, versions, cache, clock, log, statusDelayMs })
  return {
    store: cachedStore({ resources, cache, writer, clock, limits: needs.limits }),
    origin: file.origin,
    ...(reserve &&
      guard && {
        upkeep: sqliteUpkeep({
          ...{ reserve, guard, limits: needs.limits, clock, log },
          freePages: file.freePages,
          sizes: cache.sizes,
        }),
      }),
    ...(secrets !== undefined && { rotateSecretsKey: secrets.rotateKey }),
    async backUp(target, { made, version, authority }) {
      writer.flush()
      await file.copyTo(target)
      sealBackup(target, made, version, await authority())
    },
  }
}

function load(file: SqliteFile, cache: ObjectCache, resources: ResourceRegistry, log: Log): void {
  for (const { resource, body } of file.rows()) {
    const name = storedName(resource, resources)
    if (name !== undefined) cache.load(name, frozenFromJSON(body) as AnyStoredObject, body.length)
    else log.warn('Stored object of an unknown kind ignored', { resource })
  }
}
