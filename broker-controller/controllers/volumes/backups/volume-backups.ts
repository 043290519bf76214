/**
 * Loop: backs up volumes, when a person asks for it and by a schedule, and restores them. What is decided about backups is in `backup-plan.ts` and
 * `backup-due.ts`; data goes from node to node through the controller, which encrypts it.
 */
import { isApiError } from '../../../../api/api-error.ts'
import { backupOf, restoreOf } from '../../../../api/backups/volume-backup.ts'
import { type Reconciled, runController } from '../../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../../daemon/run.ts'
import { workQueue } from '../../../../daemon/work-queue.ts'
import type { ClaimPods } from '../claim-pods.ts'
import { backupSources } from './backup-sources.ts'
import { backupSteps } from './backup-steps.ts'
import { restoreSteps } from './restore-steps.ts'
import type { VolumeBackupNeeds } from './volume-backup-needs.ts'

/** Another writer was faster: its write is visible by then. */
const conflictMs = 20

export function volumeBackups(needs: VolumeBackupNeeds, pods: ClaimPods): Loop {
  const { clock, log, hold } = needs
  const queue = workQueue(clock)
  const visit = (name: string, waitMs = 0) => queue.addAfter(name, waitMs)
  const sources = backupSources(needs, visit)
  const backups = backupSteps(needs, pods, sources, visit)
  const restores = restoreSteps(needs, sources, visit)

  const stepOf = async (name: string): Promise<Reconciled> => {
    const volume = sources.volume(name)
    const [restore, backup] = [volume && restoreOf(volume), volume && backupOf(volume)]
    if (restore === undefined) await restores.jobs.stop(name)
    if (backup === undefined) await backups.jobs.stop(name)
    if (volume === undefined || hold?.holds('statefulsets') === true) return undefined
    if (restore !== undefined) return restores.advance(volume, restore)
    return backup === undefined ? backups.begin(volume) : backups.advance(volume, backup)
  }
  const reconcile = async (name: string): Promise<Reconciled> => {
    sources.catchUp()
    pods.catchUp()
    try {
      return await stepOf(name)
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) return { requeueAfterMs: conflictMs }
      throw error
    }
  }

  return {
    name: 'volume-backups',
    run: (signal) =>
      runLoops(
        [
          ...sources.loops,
          {
            name: 'work',
            async run(stop) {
              await Promise.all([sources.listed, pods.listed])
              if (!stop.aborted) await runController({ name: 'volume-backups', reconcile }, queue, log, stop, 2)
              await Promise.all([backups.jobs.stopAll(), restores.jobs.stopAll()])
            },
          },
        ],
        signal,
        log,
      ),
  }
}
