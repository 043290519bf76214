/** Begins the backups that are due. */
import { randomBytes } from 'node:crypto'
import { type BackupRules, backupRules, dueBackup } from '../../../../api/backups/backup-due.ts'
import { targetText } from '../../../../api/backups/backup-target.ts'
import { backupFailureOf, lastBackupOf, type VolumeBackup } from '../../../../api/backups/volume-backup.ts'
import type { TimeZone } from '../../../../api/batch/time-zone.ts'
import { moveOf, moveToAnnotation } from '../../../../api/storage/volume-move.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { backupPlace } from '../../../backups/nas-of-backups.ts'
import type { StoredPod } from '../../../store/store.ts'
import { isReady } from '../../node-lifecycle/zones.ts'
import type { StoredVolume } from '../volume-index.ts'
import { hookOf } from './backup-hooks.ts'
import type { BackupSourcesOfFleet } from './backup-sources.ts'
import { withBackup } from './backup-writes.ts'
import type { VolumeBackupNeeds } from './volume-backups.ts'

export type BackupStartNeeds = Pick<VolumeBackupNeeds, 'store' | 'clock' | 'storage'> & {
  readonly sources: BackupSourcesOfFleet
  readonly podsOf: (volume: StoredVolume) => readonly StoredPod[]
  readonly waiting: (volume: StoredVolume, message: string) => Promise<Reconciled>
  /** A person changes something, or it is due again later. */
  readonly refuse: (volume: StoredVolume, why: string) => Promise<Reconciled>
  readonly zone: TimeZone
}

/** A node that becomes ready is noticed by then. */
const roundMs = 15_000
const longestWaitMs = 3600_000
/** A volume that no pod has used has no data. */
const unusedMs = 15 * 60_000
const mostAtOnce = 2

/** `begun`: called with the id of each, before it is written. */
export function backupStart(needs: BackupStartNeeds, begun: (id: string) => void) {
  const { store, clock, sources, podsOf, waiting, refuse, zone } = needs

  /** Why it cannot be made, or what it waits for. */
  const obstacle = async (volume: StoredVolume, rules: BackupRules): Promise<Reconciled | 'none'> => {
    const pool = poolOfVolume(volume)
    if (pool === undefined) return refuse(volume, 'only volumes of a pool are backed up')
    const isBound = volume.spec?.claimRef?.uid && volume.status?.phase === 'Bound'
    if (!isBound || volume.metadata.deletionTimestamp !== undefined)
      return rules.isWanted ? refuse(volume, 'the volume is not bound to a claim') : undefined
    if (moveOf(volume) !== undefined || volume.metadata.annotations?.[moveToAnnotation] !== undefined)
      return waiting(volume, 'the volume is being moved')
    const source = sources.holders.of(pool)
    if (usedBytes(volume) === undefined && !rules.isWanted) return { requeueAfterMs: unusedMs }
    if (source === undefined) return waiting(volume, `no node has the pool ${pool}`)
    const place = await backupPlace(rules.to, source.node.metadata.name, needs)
    if ('problem' in place) return place.waits ? waiting(volume, place.problem) : refuse(volume, place.problem)
    const target = sources.holders.named(place.node)
    if (target === undefined) return refuse(volume, `there is no node "${place.node}" for backups`)
    const away = [source, target].find((one) => !isReady(one.node) || one.report === undefined)
    if (away !== undefined) return waiting(volume, `node "${away.node.metadata.name}" is not ready`)
    return sources.backingUp() >= mostAtOnce ? { requeueAfterMs: roundMs } : 'none'
  }
  const usedBytes = (volume: StoredVolume) => {
    const source = sources.holders.of(poolOfVolume(volume))
    return source?.report?.volumes.find(({ uid }) => uid === volume.metadata.uid)?.usedBytes
  }

  return async (volume: StoredVolume): Promise<Reconciled> => {
    const rules = backupRules({ volume, claim: sources.claimOf(volume), storageClass: sources.classOf(volume) })
    if (rules === undefined) return undefined
    if ('problem' in rules) return refuse(volume, rules.problem)
    const nowMs = clock.wallMs()
    const createdMs = Date.parse(volume.metadata.creationTimestamp ?? '')
    const [last, failure] = [lastBackupOf(volume), backupFailureOf(volume)]
    const due = dueBackup({ ...rules, last, failure, createdMs, nowMs, zone })
    if (due === undefined) return undefined
    if ('problem' in due) return refuse(volume, due.problem)
    if (due.atMs > nowMs) return { requeueAfterMs: Math.min(due.atMs - nowMs, longestWaitMs) }
    const hindered = await obstacle(volume, rules)
    if (hindered !== 'none') return hindered
    const bytes = usedBytes(volume)
    const hasHooks = podsOf(volume).some((pod) => hookOf(pod, 'pre') !== undefined || hookOf(pod, 'post') !== undefined)
    const backup: VolumeBackup = {
      ...{ id: randomBytes(4).toString('hex'), phase: 'begin', mode: rules.mode ?? (hasHooks ? 'hooks' : 'live') },
      ...{ to: targetText(rules.to), startedAt: rfc3339(nowMs) },
      ...(bytes !== undefined && { bytes }),
    }
    begun(backup.id)
    await store.update('persistentvolumes', withBackup(volume, backup))
    return undefined
  }
}
