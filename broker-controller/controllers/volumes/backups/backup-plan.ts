/**
 * What the backup of a volume needs next. Its state is an annotation of the volume, so that a controller that ends at any point goes on: what was
 * written half is written again from the start, and pods that were stopped start again in any case. Pure.
 */
import type { VolumeBackup } from '../../../../api/backups/volume-backup.ts'
import type { SourceReport } from '../moves/move-plan.ts'

/** Work that this process does beside its loop; undefined: it was not begun. `failed`: as often as it may. */
export type JobState =
  | { readonly state: 'running' }
  | { readonly state: 'done' }
  | { readonly state: 'failed'; readonly why: string }

export type BackupStepFacts = {
  readonly backup: Pick<VolumeBackup, 'id' | 'phase' | 'mode' | 'why' | 'made'>
  /** Why it is not wanted any more; undefined: it is. */
  readonly cancelled: string | undefined
  /** What the node of the data reports of it. */
  readonly source: SourceReport | undefined
  /** The commands of its pods before and after. */
  readonly before: JobState | undefined
  readonly after: JobState | undefined
  readonly copy: (JobState & { readonly made?: VolumeBackup['made'] }) | undefined
  /** This process has begun it. */
  readonly isOwn: boolean
}

export type BackupStep =
  /** `do`: what is begun unless it runs. */
  | { readonly step: 'wait'; readonly do?: 'stop pods' | 'before' | 'copy' | 'after' }
  | { readonly step: 'enter'; readonly phase: 'write' }
  | { readonly step: 'enter'; readonly phase: 'end'; readonly made: NonNullable<VolumeBackup['made']> }
  | { readonly step: 'enter'; readonly phase: 'end'; readonly why: string }
  | { readonly step: 'finish' }

export const wasInterrupted = 'the controller ended while pods were at rest for it'

export function planBackup({ backup, cancelled, source, before, after, copy, isOwn }: BackupStepFacts): BackupStep {
  const { phase, mode } = backup
  const reported = source?.id === backup.id ? source : undefined
  const fail = (why: string): BackupStep => ({ step: 'enter', phase: 'end', why })
  if (phase === 'end') {
    if (mode === 'stopped') return reported?.isReleased ? { step: 'finish' } : { step: 'wait' }
    if (mode === 'live') return { step: 'finish' }
    return after === undefined || after.state === 'running' ? { step: 'wait', do: 'after' } : { step: 'finish' }
  }
  if (cancelled !== undefined) return fail(cancelled)
  // Whether its pods are at rest still is in the memory of the process that has brought them there.
  if (mode === 'hooks' && !isOwn) return fail(wasInterrupted)
  if (phase === 'begin') {
    if (mode === 'live') return { step: 'enter', phase: 'write' }
    if (mode === 'stopped')
      return reported?.isFenced ? { step: 'enter', phase: 'write' } : { step: 'wait', do: 'stop pods' }
    if (before?.state === 'failed') return fail(before.why)
    return before?.state === 'done' ? { step: 'enter', phase: 'write' } : { step: 'wait', do: 'before' }
  }
  // A node that was installed again has lost its hold: a pod may write.
  if (mode === 'stopped' && reported?.isFenced === false) return fail('its node did not keep the pods stopped')
  if (copy?.state === 'failed') return fail(copy.why)
  if (copy?.state === 'done' && copy.made !== undefined) return { step: 'enter', phase: 'end', made: copy.made }
  return { step: 'wait', do: 'copy' }
}
