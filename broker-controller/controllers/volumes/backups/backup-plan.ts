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

export function planBackup(facts: BackupStepFacts): BackupStep {
  const { backup, cancelled, isOwn } = facts
  if (backup.phase === 'end') return planEnd(facts)
  if (cancelled !== undefined) return endWith(cancelled)
  // Whether its pods are at rest still is in the memory of the process that has brought them there.
  if (backup.mode === 'hooks' && !isOwn) return endWith(wasInterrupted)
  return backup.phase === 'begin' ? planBegin(facts) : planWrite(facts)
}

function endWith(why: string): BackupStep {
  return { step: 'enter', phase: 'end', why }
}

/** What its node reports of this backup, not of one before. */
function reportedOf({ backup, source }: BackupStepFacts): SourceReport | undefined {
  return source?.id === backup.id ? source : undefined
}

/** Its pods are brought to rest. */
function planBegin(facts: BackupStepFacts): BackupStep {
  const { backup, before } = facts
  const write: BackupStep = { step: 'enter', phase: 'write' }
  switch (backup.mode) {
    case 'live':
      return write
    case 'stopped':
      return reportedOf(facts)?.isFenced ? write : { step: 'wait', do: 'stop pods' }
    case 'hooks':
      if (before?.state === 'failed') return endWith(before.why)
      return before?.state === 'done' ? write : { step: 'wait', do: 'before' }
  }
}

function planWrite(facts: BackupStepFacts): BackupStep {
  const { backup, copy } = facts
  // A node that was installed again has lost its hold: a pod may write.
  const isFenceLost = backup.mode === 'stopped' && reportedOf(facts)?.isFenced === false
  if (isFenceLost) return endWith('its node did not keep the pods stopped')
  if (copy?.state === 'failed') return endWith(copy.why)
  if (copy?.state === 'done' && copy.made !== undefined) return { step: 'enter', phase: 'end', made: copy.made }
  return { step: 'wait', do: 'copy' }
}

/** Its pods go on. */
function planEnd(facts: BackupStepFacts): BackupStep {
  const { backup, after } = facts
  switch (backup.mode) {
    case 'live':
      return { step: 'finish' }
    case 'stopped':
      return reportedOf(facts)?.isReleased ? { step: 'finish' } : { step: 'wait' }
    case 'hooks':
      return after === undefined || after.state === 'running' ? { step: 'wait', do: 'after' } : { step: 'finish' }
  }
}
