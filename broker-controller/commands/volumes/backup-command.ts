/** `volumes backup`, `backups` and `restore`: the controller does it; the commands ask, and watch. */
import { backupKeep } from '../../../api/backups/backup-retention.ts'
import { backupTarget, isInsideNas } from '../../../api/backups/backup-target.ts'
import type { FleetBackup, FleetBackups } from '../../../api/backups/fleet-backups.ts'
import {
  backupKeepAnnotation,
  backupModeAnnotation,
  backupNowAnnotation,
  backupScheduleAnnotation,
  backupToAnnotation,
  lastBackupAnnotation,
} from '../../../api/backups/volume-backup.ts'
import { backupProgress } from '../../../api/backups/volume-progress.ts'
import { parseSchedule } from '../../../api/batch/cron-schedule.ts'
import { utc } from '../../../api/batch/time-zone.ts'
import type { FleetVolume } from '../../../api/storage/fleet-volumes.ts'
import { moveRateAnnotation, usualMoveRate } from '../../../api/storage/volume-move.ts'
import { byteText } from '../../../api/text/byte-text.ts'
import { formatDuration } from '../../../daemon/duration.ts'
import { printable } from '../printable.ts'
import { textTable } from '../text-table.ts'
import type { MoveWatch } from './move-command.ts'
import { claimName, volumeNamed } from './volume-tables.ts'

export type BackupWish = {
  /** undefined: that of the last time. */
  readonly to: string | undefined
  readonly stops: boolean
  /** undefined: it is made now; '': by no schedule any more. */
  readonly schedule: string | undefined
  readonly keep: string | undefined
  readonly bytesPerSecond: number | undefined
}

const pollMs = 2_000

/** undefined: the wish can be understood. */
export function wishProblem({ to, schedule, keep }: BackupWish): string | undefined {
  const target = to === undefined ? {} : backupTarget(to)
  if ('problem' in target) return `--to: ${target.problem}`
  const rule = keep === undefined ? {} : backupKeep(keep)
  if ('problem' in rule) return `--keep: ${rule.problem}`
  const times = schedule === undefined || schedule === '' ? undefined : parseSchedule(schedule, utc)
  return times === undefined || times.ok ? undefined : `--schedule: ${times.problem}`
}

function backupAnnotations({ to, stops, schedule, keep, bytesPerSecond }: BackupWish): Annotations {
  const when: Annotations =
    schedule === undefined
      ? { [backupNowAnnotation]: stops ? 'stopped' : 'usual' }
      : {
          [backupScheduleAnnotation]: schedule === '' ? null : schedule,
          [backupModeAnnotation]: stops ? 'stopped' : null,
        }
  return {
    // With a folder that is given the identity of the one before does not count.
    ...(to !== undefined && { [backupToAnnotation]: to, [lastBackupAnnotation]: null }),
    ...(keep !== undefined && { [backupKeepAnnotation]: keep }),
    ...(bytesPerSecond !== undefined && { [moveRateAnnotation]: String(bytesPerSecond) }),
    ...when,
  }
}

type Annotations = Parameters<MoveWatch['annotate']>[1]

/** Asks for the backup and resolves when it is made; or sets the schedule. Throws when it cannot be, or fails. */
export async function backUpClaim(subject: string, wish: BackupWish, watch: MoveWatch): Promise<string> {
  const row = volumeNamed(subject, await watch.fleet())
  const problem = backupProblem(row)
  if (problem !== undefined) throw new Error(problem)
  const { schedule } = wish
  const before = row.lastBackup
  await watch.annotate(row.volume, backupAnnotations(wish))
  const claim = row.claim ?? row.volume
  if (schedule === '') return `${claim} is not backed up by a schedule of its volume any more.\n`
  if (schedule !== undefined) return `${claim} is backed up by the schedule ${schedule}, the first time soon.\n`
  watch.print(estimate(row, wish))
  let last = ''
  for (;;) {
    await watch.clock.sleep(pollMs, watch.signal)
    if (watch.signal.aborted) return `The backup goes on. 'kubectl describe pvc' has its end.\n`
    const now = volumeNamed(row.volume, await watch.fleet())
    if (now.backup === undefined) return ended(now, before)
    const text = `${backupProgress(now.backup).text}\n`
    if (text !== last) watch.print(text)
    last = text
  }
}

function ended({ lastBackup, backupFailure, volume }: FleetVolume, before: FleetVolume['lastBackup']): string {
  if (lastBackup !== undefined && lastBackup.name !== before?.name)
    return `Backed up: ${lastBackup.name} in ${lastBackup.to}, ${byteText(lastBackup.bytes)}.\n`
  throw new Error(`Not backed up: ${backupFailure?.why ?? `'kubectl describe pv ${volume}' has the reason`}`)
}

function backupProblem({ pool, claim, state, backup, restore }: FleetVolume): string | undefined {
  if (pool === undefined) return `Only volumes of a pool are backed up: that of ${claim} is not in one`
  if (state !== 'Bound' || claim === undefined) return 'The volume is not bound to a claim'
  if (restore !== undefined) return `${claim} is being restored`
  return backup === undefined ? undefined : `${claim} is being backed up already`
}

function estimate(
  { claim, usedBytes, pods, lastBackup }: FleetVolume,
  { to = lastBackup?.to ?? 'the folder of its annotation', stops, bytesPerSecond = usualMoveRate }: BackupWish,
): string {
  const size =
    usedBytes === undefined
      ? 'of a size that was not measured yet'
      : `(${byteText(usedBytes)}, at most ${formatDuration(Math.ceil(usedBytes / bytesPerSecond) * 1000)} at full speed)`
  const users =
    pods.length === 0 ? 'No pod uses it' : `Its pods (${pods.join(', ')}) ${stops ? 'are stopped' : 'run'} meanwhile`
  return `Backing up ${claim} ${size} to ${to}. ${users}.\n`
}

/** `folder`: where it was looked for. */
export function backupsTable({ backups, problems }: FleetBackups): string {
  const notes = problems.map((problem) => `Not read: ${printable(problem)}\n`).join('')
  if (backups.length === 0) return `No backups.\n${notes}`
  const head = ['CLAIM', 'TIME', 'SIZE', 'CONSISTENCY', 'STATE', 'BACKUP']
  const rows = backups.map((one) => [
    one.claim,
    one.time,
    byteText(one.bytes),
    one.consistency,
    one.problem === undefined ? (one.base === undefined ? 'Whole' : 'Changes') : 'Unusable',
    `${one.at}/${one.name}`,
  ])
  const wrong = backups.flatMap(({ name, problem }) => (problem === undefined ? [] : [`${name}: ${problem}\n`]))
  return `${textTable([head, ...rows].map((row) => row.map(printable)))}${wrong.map(printable).join('')}${notes}`
}

/** `NODE:PATH/NAME`, `pv/VOLUME/NAME`, `class/CLASS/NAME`, a name, or a claim, whose latest backup is meant. `at`: where to look; undefined: everywhere. */
export function backupSubject(subject: string): { readonly at: string | undefined; readonly name: string } {
  const slash = subject.lastIndexOf('/')
  if (!isInsideNas(subject) && !subject.includes(':')) return { at: undefined, name: subject }
  return { at: subject.slice(0, slash), name: subject.slice(slash + 1) }
}

/** Throws where there is none. */
export function chosenBackup(name: string, { backups, problems }: FleetBackups): FleetBackup {
  const found = backups.find((one) => one.name === name) ?? backups.find(({ claim }) => claim === claimName(name))
  if (found !== undefined) return found
  const notes = problems.length === 0 ? '' : `. ${problems.join('; ')}`
  throw new Error(`There is no backup ${name}: 'bramble-controller volumes backups' lists them${notes}`)
}

/** Resolves when the data is there. */
export async function watchRestore(
  volume: string,
  claim: string,
  { fleet, print, clock, signal }: Omit<MoveWatch, 'annotate'>,
): Promise<string> {
  let last = ''
  for (;;) {
    await clock.sleep(pollMs, signal)
    if (signal.aborted) return `The data of ${claim} comes without this command. 'kubectl describe pvc' has its end.\n`
    const { restore } = volumeNamed(volume, await fleet())
    if (restore === undefined) return `Restored: pods with ${claim} start with the data.\n`
    const text =
      restore.why === undefined
        ? `restores${restore.copiedBytes === undefined ? '' : `: ${byteText(restore.copiedBytes)}, compressed`}\n`
        : `It is tried again: ${restore.why}. To end it, delete the claim\n`
    if (text !== last) print(text)
    last = text
  }
}
