/** A restored store is copied into etcd, with its identity: it accepts checkpoints of nodes as one in SQLite does. */
import type { CopySummary } from '../etcd/etcd-copy.ts'
import { methods } from '../etcd/etcd-messages.ts'
import { putOrigin, readOrigin } from '../etcd/etcd-origin.ts'
import { etcdValues } from '../etcd/etcd-values.ts'
import { openSqliteFile } from '../sqlite/sqlite-file.ts'
import { type OwnedPrefixNeeds, prepareEmpty, withOwnedPrefix } from './owned-prefix.ts'
import { copyToEtcd, useKeys } from './store-copy.ts'

/**
 * Copies the objects of the file `store` below an empty prefix. `finish` is called when they are there and verified; after it the prefix
 * is a store. Until then no controller starts on it, and the same call may be repeated. Rejects with StoreInUseError, SecretsKeyError,
 * and an error where the prefix is in use or the copy is not equal. `secretsKeyFile` is made where there is none.
 */
export async function restoreToEtcd(
  needs: OwnedPrefixNeeds,
  store: string,
  secretsKeyFile: string,
  finish: () => Promise<void>,
): Promise<CopySummary> {
  const file = openSqliteFile(store)
  try {
    const values = etcdValues()
    await useKeys(secretsKeyFile, file, values)
    const { origin } = file
    return await withOwnedPrefix(needs, async (client, keys, owned) => {
      const remedy = "run 'bramble-controller restore FILE --replace' again, with the same settings of etcd"
      await prepareEmpty(client, keys, owned, `A restore into ${keys.prefix} in etcd was interrupted: ${remedy}`)
      const summary = await copyToEtcd({ client, keys, values }, owned, file, needs.signal)
      // No version of a lease that a client may have is assigned again.
      const value = Buffer.from(String(file.reserved()))
      const { succeeded } = await client.call(methods.txn, {
        compare: [owned],
        success: [{ put: { key: keys.leaseVersions, value } }],
      })
      if (!succeeded) throw new Error(`Another controller uses ${keys.prefix} in etcd`)
      file.close()
      await finish()
      await putOrigin(client, keys, owned, origin).catch(async (error: unknown) => {
        // Without an answer it may have happened.
        const present = await readOrigin(client, keys)
        if (present?.id !== origin.id) throw error
      })
      return summary
    })
  } finally {
    file.close()
  }
}
