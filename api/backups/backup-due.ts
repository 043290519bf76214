/** When a volume is backed up, where to, and how: by annotations of its claim, of the volume and of its class. Pure. */

import { parseSchedule, type Schedule } from '../batch/cron-schedule.ts'
import type { TimeZone } from '../batch/time-zone.ts'
import { backupKeep } from './backup-retention.ts'
import { type BackupTarget, backupTarget, writtenTargets } from './backup-target.ts'
import {
  type BackupFailure,
  type BackupMode,
  backupKeepAnnotation,
  backupModeAnnotation,
  backupNowAnnotation,
  backupScheduleAnnotation,
  backupToAnnotation,
  isBackupMode,
  type LastBackup,
} from './volume-backup.ts'

type Annotated = { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } } | undefined

export type BackupSources = {
  /** A tenant may write to the claim: it does not decide where data goes. */
  readonly claim: Annotated
  readonly volume: Annotated
  readonly storageClass: Annotated
}

export type BackupRules = {
  readonly to: BackupTarget
  readonly keep: string | undefined
  /** undefined: hooks if its pods have any, else live. */
  readonly mode: BackupMode | undefined
  readonly schedule: string | undefined
  /** A person wants one now. */
  readonly isWanted: boolean
}

/** undefined: it is not backed up. `problem`: what a person has to change. */
export function backupRules({
  claim,
  volume,
  storageClass,
}: BackupSources): BackupRules | { readonly problem: string } | undefined {
  const first = (name: string, ...of: readonly Annotated[]) =>
    of.map((one) => one?.metadata.annotations?.[name]).find((text) => text !== undefined && text !== '')
  const wanted = first(backupNowAnnotation, volume)
  const schedule = first(backupScheduleAnnotation, claim, volume, storageClass)
  if (wanted === undefined && schedule === undefined) return undefined
  const written = first(backupToAnnotation, volume, storageClass)
  if (written === undefined)
    return {
      problem: `no folder for backups is given: set ${backupToAnnotation} of the volume or its class to ${writtenTargets}`,
    }
  const to = backupTarget(written)
  if ('problem' in to) return { problem: `${backupToAnnotation}: ${to.problem}` }
  const keep = first(backupKeepAnnotation, claim, volume, storageClass)
  const rule = keep === undefined ? undefined : backupKeep(keep)
  if (rule !== undefined && 'problem' in rule) return { problem: `${backupKeepAnnotation}: ${rule.problem}` }
  const asked = wanted !== undefined && isBackupMode(wanted) ? wanted : undefined
  const mode = asked ?? first(backupModeAnnotation, claim, volume, storageClass)
  if (mode !== undefined && !isBackupMode(mode))
    return { problem: `${backupModeAnnotation} is ${JSON.stringify(mode)}: use live, hooks or stopped` }
  return { to, keep, mode, schedule, isWanted: wanted !== undefined }
}

export type DueFacts = {
  readonly schedule: string | undefined
  readonly isWanted: boolean
  readonly last: Pick<LastBackup, 'time'> | undefined
  readonly failure: BackupFailure | undefined
  /** When the volume was made. */
  readonly createdMs: number
  readonly nowMs: number
  readonly zone: TimeZone
}

const [firstRetryMs, longestRetryMs] = [10 * 60_000, 6 * 3600_000]

/** When it is to be made, which may be past; undefined: not by itself. */
export function dueBackup({
  schedule,
  isWanted,
  last,
  failure,
  createdMs,
  nowMs,
  zone,
}: DueFacts): { readonly atMs: number } | { readonly problem: string } | undefined {
  if (isWanted) return { atMs: nowMs }
  if (schedule === undefined) return undefined
  const parsed = parseSchedule(schedule, zone)
  if (!parsed.ok) return { problem: `${backupScheduleAnnotation} is ${JSON.stringify(schedule)}: ${parsed.problem}` }
  const atMs = nextBackupMs(parsed.schedule, { last, createdMs, nowMs })
  if (atMs === undefined) return undefined
  const failedMs = failure === undefined ? Number.NaN : Date.parse(failure.time)
  // What failed in the meantime is tried again, less and less often.
  const retryMs = Math.min(firstRetryMs * 2 ** Math.min((failure?.count ?? 1) - 1, 10), longestRetryMs)
  const isAfter = failedMs >= atMs && failedMs <= nowMs
  return { atMs: isAfter ? failedMs + retryMs : atMs }
}

/** When the schedule wants the backup after the last one, which may be past; undefined: never. */
export function nextBackupMs(
  schedule: Pick<Schedule, 'next'>,
  { last, createdMs, nowMs }: Pick<DueFacts, 'last' | 'createdMs' | 'nowMs'>,
): number | undefined {
  // A date of the future was that of a wrong clock.
  const since = Math.min(last === undefined ? createdMs : Date.parse(last.time), nowMs)
  return schedule.next(Number.isNaN(since) ? nowMs : since)
}

const fullMs = 7 * 24 * 3600_000

/** The backup of which the next one has the changes; undefined: it has everything. */
export function baseOf(
  last: LastBackup | undefined,
  { to, nowMs }: { readonly to: string; readonly nowMs: number },
): LastBackup['full'] | undefined {
  if (last === undefined || last.to !== to) return undefined
  const ageMs = nowMs - Date.parse(last.full.time)
  const isSmall = last.name === last.full.name || last.bytes < last.full.bytes / 2
  return ageMs >= 0 && ageMs < fullMs && isSmall ? last.full : undefined
}
