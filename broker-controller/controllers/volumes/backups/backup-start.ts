/** Begins the backups that are due. */
import { randomBytes } from 'node:crypto'
import { type BackupRules, backupRules, dueBackup } from '../../../../api/backups/backup-due.ts'
import { targetText } from '../../../../api/backups/backup-target.ts'
import { backupFailureOf, lastBackupOf, type VolumeBackup } from '../../../../api/backups/volume-backup.ts'
import type { TimeZone } from '../../../../api/batch/time-zone.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { backupPlace } from '../../../backups/nas-of-backups.ts'
import type { StoredPod } from '../../../store/store.ts'
import type { StoredVolume } from '../volume-index.ts'
import { hookOf } from './backup-hooks.ts'
import { type BackupObstacle, placeObstacle, usedBytesOf, volumeObstacle } from './backup-obstacle.ts'
import type { BackupSourcesOfFleet } from './backup-sources.ts'
import { withBackup } from './backup-writes.ts'
import type { VolumeBackupNeeds } from './volume-backup-needs.ts'

export type BackupStartNeeds = Pick<VolumeBackupNeeds, 'store' | 'clock' | 'storage'> & {
  readonly sources: BackupSourcesOfFleet
  readonly podsOf: (volume: StoredVolume) => readonly StoredPod[]
  readonly waiting: (volume: StoredVolume, message: string) => Promise<Reconciled>
  /** A person changes something, or it is due again later. */
  readonly refuse: (volume: StoredVolume, why: string) => Promise<Reconciled>
  readonly zone: TimeZone
}

const longestWaitMs = 3600_000

/** `begun`: called with the id of each, before it is written. */
export function backupStart(needs: BackupStartNeeds, begun: (id: string) => void) {
  const { store, clock, sources, podsOf, waiting, refuse, zone } = needs

  const obstacleTo = async (volume: StoredVolume, rules: BackupRules): Promise<BackupObstacle | undefined> => {
    const source = sources.holders.of(poolOfVolume(volume))
    const obstacle = volumeObstacle({ volume, isWanted: rules.isWanted, source })
    if (obstacle !== undefined || source === undefined) return obstacle
    const place = await backupPlace(rules.to, source.node.metadata.name, needs)
    const target = 'problem' in place ? undefined : sources.holders.named(place.node)
    return placeObstacle({ place, source, target, backingUp: sources.backingUp() })
  }

  const notBegun = async (volume: StoredVolume, obstacle: BackupObstacle): Promise<Reconciled> => {
    if (obstacle.kind === 'refuse') return refuse(volume, obstacle.why)
    if (obstacle.kind === 'wait') return waiting(volume, obstacle.why)
    return obstacle.afterMs === undefined ? undefined : { requeueAfterMs: obstacle.afterMs }
  }

  const newBackup = (volume: StoredVolume, rules: BackupRules, nowMs: number): VolumeBackup => {
    const bytes = usedBytesOf(volume, sources.holders.of(poolOfVolume(volume)))
    const hasHooks = podsOf(volume).some((pod) => hookOf(pod, 'pre') !== undefined || hookOf(pod, 'post') !== undefined)
    return {
      ...{ id: randomBytes(4).toString('hex'), phase: 'begin', mode: rules.mode ?? (hasHooks ? 'hooks' : 'live') },
      ...{ to: targetText(rules.to), startedAt: rfc3339(nowMs) },
      ...(bytes !== undefined && { bytes }),
    }
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
    const obstacle = await obstacleTo(volume, rules)
    if (obstacle !== undefined) return notBegun(volume, obstacle)
    const backup = newBackup(volume, rules, nowMs)
    begun(backup.id)
    await store.update('persistentvolumes', withBackup(volume, backup))
    return undefined
  }
}
