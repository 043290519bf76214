/** What the operator of etcd has to do before etcd refuses writes: decided by the size of its database and the age of its revisions. */
import { byteText } from '../../../../api/text/byte-text.ts'

/** All in bytes. */
export type DatabaseSize = {
  /** Bytes of its file, with free pages: what etcd compares with the quota (server/storage/quota.go). */
  readonly allocated: number
  readonly used: number
  readonly quota: number
}

/** The latest revision at a time of the monotonic clock. */
export type RevisionMark = { readonly revision: number; readonly atMs: number }

export const warningReasons = ['Space', 'Compaction'] as const
export type WarningReason = (typeof warningReasons)[number]

export type UpkeepWarning = { readonly reason: WarningReason; readonly message: string }

/** The rest is minutes to days of writes: time to act before none is accepted. */
const fullShare = 0.8
/** Far more than the retention that the documentation asks for, 5 minutes. */
export const markLifeMs = 2 * 3_600_000
/** Fewer do not matter: a fleet at rest writes almost nothing. */
const mostRevisions = 10_000

export function spaceWarning({ allocated, used, quota }: DatabaseSize): UpkeepWarning | undefined {
  if (allocated < quota * fullShare) return undefined
  const remedy =
    used < allocated / 2
      ? 'Defragment it (etcdctl defrag)'
      : 'Compact and defragment it, or raise --quota-backend-bytes of etcd'
  const message = `the database of etcd has ${byteText(allocated)} of its quota of ${byteText(quota)}, and at the quota etcd refuses writes. ${remedy}`
  return { reason: 'Space', message }
}

/** Whether etcd has to be asked for the revision of the mark: it should have been compacted long ago. */
export function isMarkDue(mark: RevisionMark, nowMs: number): boolean {
  return nowMs - mark.atMs >= markLifeMs
}

/** The mark is due, and etcd still has its revision. */
export function compactionWarning(mark: RevisionMark, now: RevisionMark): UpkeepWarning | undefined {
  const revisions = now.revision - mark.revision
  if (revisions <= mostRevisions) return undefined
  const hours = Math.floor((now.atMs - mark.atMs) / 3_600_000)
  const message = `etcd keeps all ${revisions} revisions of the last ${hours} h, so its database grows. Start it with --auto-compaction-mode=periodic --auto-compaction-retention=5m`
  return { reason: 'Compaction', message }
}
