/** Makes the data of volumes from backups. Until it is there, no pod with the claim starts; what goes wrong is tried again. */
import type { BackupManifest } from '../../../../api/backups/backup-manifest.ts'
import { backupTarget } from '../../../../api/backups/backup-target.ts'
import { restoreFailureAnnotation, type VolumeRestore } from '../../../../api/backups/volume-backup.ts'
import { moveRateOf } from '../../../../api/storage/volume-move.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { expectBackupPlace } from '../../../backups/nas-of-backups.ts'
import type { BackupKeys } from '../../../own-certificates/backup-keys.ts'
import { listBackups, restoreBackup } from '../../../sessions/backup-streams.ts'
import type { VolumeEvent } from '../claim-plan.ts'
import type { StoredVolume } from '../volume-index.ts'
import { volumeWrites } from '../volume-writes.ts'
import { type BackupJobs, backupJobs } from './backup-jobs.ts'
import type { BackupSourcesOfFleet } from './backup-sources.ts'
import { withoutRestore, withRestoreFailure } from './backup-writes.ts'
import type { VolumeBackupNeeds } from './volume-backup-needs.ts'

const roundMs = 15_000
const [firstRetryMs, longestRetryMs] = [10_000, 10 * 60_000]

export interface RestoreSteps {
  advance(volume: StoredVolume, restore: VolumeRestore): Promise<Reconciled>
  readonly jobs: Pick<BackupJobs<undefined>, 'stop' | 'stopAll'>
}

export function restoreSteps(
  needs: VolumeBackupNeeds,
  sources: BackupSourcesOfFleet,
  visit: (volume: string, waitMs: number) => void,
): RestoreSteps {
  const { store, storage, clock } = needs
  const writes = volumeWrites(needs)
  const jobs = backupJobs<undefined>(needs, (volume) => visit(volume, 0))
  const record = async (volume: StoredVolume, event: VolumeEvent) => {
    await writes.record(volume, event)
    const claim = sources.claimOf(volume)
    if (claim !== undefined) await writes.record(claim, event)
  }

  const work = async (volume: StoredVolume, restore: VolumeRestore, signal: AbortSignal): Promise<undefined> => {
    const { uid } = volume.metadata
    const { claimRef, local } = volume.spec ?? {}
    const keys = await needs.backupKeys()
    const pool = poolOfVolume(volume) ?? ''
    const node = sources.holders.of(pool)?.node.metadata.name
    if (node === undefined) throw new Error(`no node has the pool ${pool}`)
    const target = backupTarget(restore.from)
    if ('problem' in target) throw new Error(target.problem)
    const from = await expectBackupPlace(target, node, needs)
    const archives = archivesOf(restore.name, await listBackups(from, needs, signal), keys, restore.from)
    const claim = claimRef?.name && `${claimRef.namespace ?? ''}/${claimRef.name}`
    const wanted = {
      ...{ uid, pool, folder: local?.path?.split('/').at(-1) ?? '', id: restore.id },
      ...(claim && { claim }),
      ...(claimRef?.uid && { claimUID: claimRef.uid }),
      archives: archives.length,
      contentBytes: archives.reduce((sum, { contentBytes }) => sum + contentBytes, 0),
    }
    await restoreBackup(
      {
        ...{ archives, from, to: { node, restore: wanted }, identities: keys.identities },
        bytesPerSecond: moveRateOf(volume),
        progress: (bytes) => void storage.copiedBytes.set(uid, bytes),
      },
      needs,
      signal,
    )
    return undefined
  }

  return {
    jobs,
    async advance(volume, restore) {
      const { name, uid, annotations = {}, deletionTimestamp } = volume.metadata
      if (deletionTimestamp !== undefined) {
        await jobs.stop(name)
        return undefined
      }
      const job = jobs.of(name, restore.id)
      if (job?.state === 'done') {
        await jobs.stop(name)
        const ended = await store.update('persistentvolumes', withoutRestore(volume))
        storage.copiedBytes.delete(uid)
        const message = `the data is that of ${restore.name} in ${restore.from}`
        await record(ended, { type: 'Normal', reason: 'VolumeRestored', message })
        return undefined
      }
      if (job?.state === 'failed') {
        await record(volume, { type: 'Warning', reason: 'VolumeRestoreFailed', message: job.why })
        if (annotations[restoreFailureAnnotation] !== job.why) {
          await store.update('persistentvolumes', withRestoreFailure(volume, job.why))
          return undefined
        }
        const retryMs = Math.min(firstRetryMs * 2 ** Math.min(job.count - 1, 10), longestRetryMs)
        const leftMs = job.atMs + retryMs - clock.monotonicMs()
        if (leftMs > 0) return { requeueAfterMs: leftMs }
      }
      jobs.ensure(name, restore.id, (signal) => work(volume, restore, signal))
      return { requeueAfterMs: roundMs }
    },
  }
}

/** The one with this name, after the one of which it has the changes. Throws where one is not there, or not believed. */
function archivesOf(
  name: string,
  all: readonly BackupManifest[],
  keys: BackupKeys,
  folder: string,
): readonly BackupManifest[] {
  const found = (wanted: string): BackupManifest => {
    const manifest = all.find((one) => one.name === wanted)
    if (manifest === undefined) throw new Error(`there is no backup ${wanted} in ${folder}`)
    const problem = keys.problemOf(manifest)
    if (problem !== undefined) throw new Error(`${wanted} in ${folder} cannot be restored: ${problem}`)
    return manifest
  }
  const last = found(name)
  return last.base === undefined ? [last] : [found(last.base), last]
}
