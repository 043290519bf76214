/** Reads the size of etcd's database each minute, and whether old revisions are compacted. */
import type { Clock } from '../../../../daemon/clock.ts'
import type { Log } from '../../../../daemon/log.ts'
import { gauge, one } from '../../../../daemon/prometheus-text.ts'
import type { StoreUpkeep } from '../../store.ts'
import type { EtcdClient } from '../etcd-client.ts'
import { isCompacted, maySucceedElsewhere } from '../etcd-error.ts'
import type { EtcdKeys } from '../etcd-keys.ts'
import { methods } from '../etcd-messages.ts'
import {
  compactionWarning,
  type DatabaseSize,
  isMarkDue,
  type RevisionMark,
  spaceWarning,
  type UpkeepWarning,
  warningReasons,
} from './upkeep-warnings.ts'

export type UpkeepNeeds = {
  readonly client: Pick<EtcdClient, 'call'>
  readonly keys: Pick<EtcdKeys, 'owner'>
  /** Used where etcd does not name its quota: before 3.6. undefined: etcd's default. */
  readonly quotaBytes?: number
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly log: Log
}

const periodMs = 60_000
/** server/storage/quota.go, DefaultQuotaBytes. */
export const defaultQuotaBytes = 2 ** 31

/** Upkeep of the member that this controller is connected to. */
export function etcdUpkeep({ client, keys, quotaBytes = defaultQuotaBytes, clock, log }: UpkeepNeeds): StoreUpkeep {
  let size: DatabaseSize | undefined
  let mark: RevisionMark | undefined
  let warnings: readonly UpkeepWarning[] = []
  let hasFailed = false

  const isReadable = (revision: number) =>
    client.call(methods.range, { key: keys.owner, limit: 1, keysOnly: true, revision }).then(
      () => true,
      (error: unknown) => {
        if (isCompacted(error)) return false
        throw error
      },
    )
  /** Lower than that of the mark: etcd was restored from a snapshot. */
  const compaction = async (now: RevisionMark): Promise<UpkeepWarning | undefined> => {
    if (mark === undefined || now.revision < mark.revision) mark = now
    if (!isMarkDue(mark, now.atMs)) return undefined
    if (await isReadable(mark.revision)) return compactionWarning(mark, now)
    mark = now
    return undefined
  }
  const replaceWarnings = (next: readonly UpkeepWarning[]) => {
    const has = (all: readonly UpkeepWarning[], { reason }: UpkeepWarning) => all.some((one) => one.reason === reason)
    for (const one of next)
      if (!has(warnings, one)) log.warn('etcd needs attention', { reason: one.reason, why: one.message })
    for (const one of warnings) if (!has(next, one)) log.info('etcd no longer needs attention', { reason: one.reason })
    warnings = next
  }
  const read = async () => {
    const { header, allocated, used, quota } = await client.call(methods.status, {})
    size = { allocated, used, quota: quota > 0 ? quota : quotaBytes }
    const late = await compaction({ revision: header?.revision ?? 0, atMs: clock.monotonicMs() })
    replaceWarnings([spaceWarning(size), late].filter((one) => one !== undefined))
    hasFailed = false
  }
  const fail = (error: unknown) => {
    size = undefined
    // Readiness and the watch report an etcd that is away.
    if (!hasFailed && !maySucceedElsewhere(error)) log.warn('Cannot read the size of the database of etcd', { error })
    hasFailed = true
  }

  return {
    name: 'etcd-upkeep',
    async run(signal) {
      while (!signal.aborted) {
        await read().catch(fail)
        await clock.sleep(periodMs, signal)
      }
    },
    warnings: () => warnings.map(({ message }) => message),
    metrics: () => [
      // The name is that of kube-apiserver (apiserver/pkg/storage/etcd3/metrics).
      gauge(
        'apiserver_storage_size_bytes',
        'Size of the database file of etcd, in bytes.',
        one(size?.allocated, { storage_cluster_id: 'etcd-0' }),
      ),
      gauge('bramble_etcd_database_used_bytes', 'Used part of the database file of etcd.', one(size?.used)),
      gauge('bramble_etcd_database_quota_bytes', 'Size at which etcd refuses writes.', one(size?.quota)),
      gauge(
        'bramble_etcd_warning',
        '1 if the operator of etcd has to act before etcd refuses writes.',
        warningReasons.flatMap((reason) =>
          one(warnings.some((warning) => warning.reason === reason) ? 1 : 0, { reason }),
        ),
      ),
    ],
  }
}
