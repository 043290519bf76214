/** A prefix of etcd that this process alone writes while it copies objects: no controller uses it meanwhile. */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { EtcdClient } from '../etcd/etcd-client.ts'
import { connectEtcd } from '../etcd/etcd-connection.ts'
import { deleteObjects } from '../etcd/etcd-copy.ts'
import { type EtcdKeys, etcdKeys } from '../etcd/etcd-keys.ts'
import type { Compare } from '../etcd/etcd-messages.ts'
import { migrationMark, putMigrationMark } from '../etcd/etcd-origin.ts'
import type { EtcdPlace } from '../etcd/etcd-place.ts'
import { readRange } from '../etcd/etcd-range.ts'
import { ownerHasEnded, ownProcess } from '../etcd/owner-process.ts'
import { acquireStore, ownedBy } from '../etcd/store-owner.ts'

export type OwnedPrefixNeeds = {
  readonly place: EtcdPlace
  readonly clock: Clock
  readonly log: Log
  /** See `EtcdClientNeeds`. */
  readonly deadlineMs?: number | undefined
  /** Ends the wait for etcd and for a previous owner. */
  readonly signal?: AbortSignal | undefined
}

/** The work with this process as the owner of the prefix: `owned` is a condition of each write. Rejects with StoreInUseError. */
export async function withOwnedPrefix<T>(
  { place, clock, log, deadlineMs, signal }: OwnedPrefixNeeds,
  work: (client: EtcdClient, keys: EtcdKeys, owned: Compare) => Promise<T>,
): Promise<T> {
  const client = await connectEtcd(place, { clock, log, deadlineMs, signal })
  try {
    const keys = etcdKeys(place.prefix)
    const owner = await acquireStore({ client, keys, self: ownProcess(), hasEnded: ownerHasEnded, clock, log, signal })
    try {
      return await work(client, keys, ownedBy(owner, place.prefix))
    } finally {
      await owner.release()
    }
  } finally {
    client.close()
  }
}

/**
 * Refuses a prefix with anything in it but what an interrupted copy left, which is deleted. No controller starts on the prefix until
 * `putOrigin` removes the mark that is written here; `interrupted` is what such a controller logs.
 */
export async function prepareEmpty(
  client: EtcdClient,
  keys: EtcdKeys,
  owned: Compare,
  interrupted: string,
): Promise<void> {
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
  await putMigrationMark(client, keys, owned, { state: 'copying', message: interrupted })
}
