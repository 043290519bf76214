/** Carries out what is decided about the backup of a volume. Throws Conflict if another writer was faster. */
import {
  backupNowAnnotation,
  type LastBackup,
  lastBackupOf,
  type VolumeBackup,
} from '../../../../api/backups/volume-backup.ts'
import { localTimeZone, type TimeZone } from '../../../../api/batch/time-zone.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import { byteText } from '../../../../api/text/byte-text.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import type { StoredPod } from '../../../store/store.ts'
import type { VolumeEvent } from '../claim-plan.ts'
import type { ClaimPods } from '../claim-pods.ts'
import { sourceReport } from '../moves/move-start.ts'
import { stopPods } from '../pod-stops.ts'
import type { StoredVolume } from '../volume-index.ts'
import { volumeWrites } from '../volume-writes.ts'
import { type BackupJobs, backupJobs } from './backup-jobs.ts'
import { type JobState, planBackup, wasInterrupted } from './backup-plan.ts'
import type { BackupSourcesOfFleet } from './backup-sources.ts'
import { backupStart } from './backup-start.ts'
import { type MadeBackupOfVolume, makeVolumeBackup, runHooks } from './backup-work.ts'
import { withBackup, withoutBackup } from './backup-writes.ts'
import type { VolumeBackupNeeds } from './volume-backup-needs.ts'

/** A node that becomes ready, and pods that end, are noticed by then. */
const roundMs = 15_000
const longestWaitMs = 3600_000
const mostAttempts = 3
const againMs = 10_000

export interface BackupSteps {
  begin(volume: StoredVolume): Promise<Reconciled>
  advance(volume: StoredVolume, backup: VolumeBackup): Promise<Reconciled>
  readonly jobs: Pick<BackupJobs<MadeBackupOfVolume | undefined>, 'stop' | 'stopAll'>
}

/** What people see of backups. */
function backupEvents(needs: VolumeBackupNeeds, sources: BackupSourcesOfFleet) {
  const { store, clock } = needs
  const writes = volumeWrites(needs)
  const record = async (volume: StoredVolume, event: VolumeEvent) => {
    await writes.record(volume, event)
    const claim = sources.claimOf(volume)
    if (claim !== undefined) await writes.record(claim, event)
  }
  const waiting = async (volume: StoredVolume, message: string, requeueAfterMs = roundMs): Promise<Reconciled> => {
    await record(volume, { type: 'Normal', reason: 'VolumeBackupWaits', message })
    return { requeueAfterMs }
  }
  /** A person changes something, or the next time that it is due. */
  const refuse = async (volume: StoredVolume, why: string): Promise<Reconciled> => {
    await record(volume, { type: 'Warning', reason: 'VolumeBackupFailed', message: why })
    if (volume.metadata.annotations?.[backupNowAnnotation] === undefined) return { requeueAfterMs: longestWaitMs }
    const time = rfc3339(clock.wallMs())
    await store.update('persistentvolumes', withoutBackup(volume, { why, time, keepsWish: false }))
    return undefined
  }
  return { record, waiting, refuse }
}

type Hooks = 'before' | 'after'

/** What is done for a backup beside the loop: commands in its pods, and the copy. */
function backupWork(
  needs: VolumeBackupNeeds,
  sources: BackupSourcesOfFleet,
  podsOf: (volume: StoredVolume) => readonly StoredPod[],
  ended: (volume: string) => void,
) {
  const jobs = backupJobs<MadeBackupOfVolume | undefined>(needs, ended)
  return {
    jobs,
    hooksState: ({ metadata }: StoredVolume, { id }: VolumeBackup, when: Hooks): JobState | undefined =>
      jobs.of(metadata.name, `${id} ${when}`),
    /** One that failed is tried again a few times. */
    copyState({ metadata }: StoredVolume, { id }: VolumeBackup) {
      const job = jobs.of(metadata.name, `${id} copy`)
      if (job?.state === 'failed' && job.count < mostAttempts) return { state: 'running' as const }
      return job?.state === 'done' ? { state: job.state, ...(job.result && { made: job.result }) } : job
    },
    ensureHooks: (volume: StoredVolume, { id }: VolumeBackup, when: Hooks) =>
      jobs.ensure(volume.metadata.name, `${id} ${when}`, (signal) =>
        runHooks(needs, podsOf(volume), when === 'before' ? 'pre' : 'post', signal),
      ),
    /** Milliseconds until a copy that failed is tried again; undefined: it runs. */
    ensureCopy(volume: StoredVolume, backup: VolumeBackup): number | undefined {
      const { name } = volume.metadata
      const job = `${backup.id} copy`
      const earlier = jobs.of(name, job)
      const leftMs = earlier?.state === 'failed' ? earlier.atMs + againMs - needs.clock.monotonicMs() : 0
      if (leftMs > 0) return leftMs
      jobs.ensure(name, job, (signal) =>
        makeVolumeBackup(needs, { volume, backup, isFirst: earlier === undefined }, sources, signal),
      )
      return undefined
    },
  }
}

export function backupSteps(
  needs: VolumeBackupNeeds,
  pods: ClaimPods,
  sources: BackupSourcesOfFleet,
  visit: (volume: string, waitMs: number) => void,
  zone: TimeZone = localTimeZone(),
): BackupSteps {
  const { store, storage, clock } = needs
  /** The backups that this process has begun. */
  const own = new Set<string>()

  const { record, waiting, refuse } = backupEvents(needs, sources)
  const podsOf = ({ spec }: StoredVolume) => {
    const { namespace = '', name = '' } = spec?.claimRef ?? {}
    return [...pods.podsOf({ namespace, name })].filter(({ status }) => status?.phase === 'Running')
  }
  const work = backupWork(needs, sources, podsOf, (volume) => visit(volume, 0))
  const { jobs } = work
  const begin = backupStart({ store, storage, clock, sources, podsOf, waiting, refuse, zone }, (id) => own.add(id))

  const wait = async (
    volume: StoredVolume,
    backup: VolumeBackup,
    what: 'stop pods' | 'before' | 'copy' | 'after' | undefined,
  ): Promise<Reconciled> => {
    if (what === 'before' || what === 'after') work.ensureHooks(volume, backup, what)
    const pauseMs = what === 'copy' ? work.ensureCopy(volume, backup) : undefined
    if (pauseMs !== undefined) return { requeueAfterMs: pauseMs }
    const bare = what === 'stop pods' ? await stopPods(needs, pods, volume) : undefined
    if (bare !== undefined)
      return waiting(volume, `pod "${bare.metadata.name}" has no controller that makes it again: delete it`)
    const waits = sources.holders.of(poolOfVolume(volume))?.report?.moves?.get(volume.metadata.uid)?.waits
    return waits === undefined ? { requeueAfterMs: roundMs } : waiting(volume, waits)
  }

  const finish = async (volume: StoredVolume, backup: VolumeBackup): Promise<Reconciled> => {
    const { name, uid } = volume.metadata
    await jobs.stop(name)
    const { made, mode, to, startedAt, why = 'the reason is lost' } = backup
    const time = rfc3339(clock.wallMs())
    const isAgain = why === wasInterrupted
    const result =
      made === undefined
        ? { why, time, keepsWish: isAgain }
        : { last: lastOf(made, { id: backup.id, mode, to, time: startedAt }, lastBackupOf(volume)) }
    const ended = await store.update('persistentvolumes', withoutBackup(volume, result))
    storage.copiedBytes.delete(uid)
    own.delete(backup.id)
    await record(
      ended,
      made === undefined
        ? { type: 'Warning', reason: 'VolumeBackupFailed', message: why }
        : { type: 'Normal', reason: 'VolumeBackedUp', message: `${made.name} in ${to}, ${byteText(made.bytes)}` },
    )
    return undefined
  }

  const advance = async (volume: StoredVolume, backup: VolumeBackup): Promise<Reconciled> => {
    const { uid, name, deletionTimestamp } = volume.metadata
    const { id } = backup
    const source = sources.holders.of(poolOfVolume(volume))
    const isGone = deletionTimestamp !== undefined || volume.status?.phase !== 'Bound'
    const step = planBackup({
      backup,
      cancelled: isGone ? 'the claim is being deleted' : undefined,
      source: sourceReport(source?.report?.moves?.get(uid), { id, isDiscarded: false }),
      before: work.hooksState(volume, backup, 'before'),
      after: work.hooksState(volume, backup, 'after'),
      copy: work.copyState(volume, backup),
      isOwn: own.has(id),
    })
    if (step.step === 'finish') return finish(volume, backup)
    if (step.step === 'wait') return wait(volume, backup, step.do)
    if (step.phase === 'end' && 'why' in step) await jobs.stop(name)
    const { step: _, ...entered } = step
    await store.update('persistentvolumes', withBackup(volume, { ...backup, ...entered }))
    return undefined
  }

  return { begin, advance, jobs }
}

function lastOf(
  { name, bytes, mark, base }: MadeBackupOfVolume,
  { id, mode, to, time }: Pick<VolumeBackup, 'id' | 'mode' | 'to'> & { readonly time: string },
  before: LastBackup | undefined,
): LastBackup {
  const full = base !== undefined && before?.full.name === base ? before.full : { id, name, time, bytes }
  return { name, to, mark, time, bytes, mode, full }
}
