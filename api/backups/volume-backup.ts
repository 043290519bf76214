/** Backups of a volume as they are written on its PersistentVolume, and the orders that follow from that. Pure. */
import { decode } from '../decode.ts'
import { type Described, integer, object, oneOf, optional, type TSchema, text } from '../schema.ts'
import type { PersistentVolume } from '../storage/persistent-volume.ts'
import type { NodeVolumeOrder } from '../storage/volume-messages.ts'
import { isMoveID } from '../storage/volume-move.ts'
import { poolOfVolume } from '../storage/volume-place.ts'
import { parseJson } from '../text/json.ts'

/** On a PersistentVolume or a StorageClass, written by a person: the folder for backups, `NODE:PATH`, `pv/NAME` or `class/NAME`. */
export const backupToAnnotation = 'bramble.dev/backup-to'
/** On a claim, its PersistentVolume or its StorageClass: when it is backed up, like a schedule of a CronJob. */
export const backupScheduleAnnotation = 'bramble.dev/backup'
/** On the same: which backups stay, like `last=3,daily=7`. */
export const backupKeepAnnotation = 'bramble.dev/backup-keep'
/** On the same: `live`, `hooks` or `stopped`. */
export const backupModeAnnotation = 'bramble.dev/backup-mode'
/** On a PersistentVolume, written by a person: back it up now, in this mode or as `usual`. It is removed when that has ended. */
export const backupNowAnnotation = 'bramble.dev/backup-now'
/** On a PersistentVolume, written by the controller: the backup that is being made, the last one, and why the last one failed. */
export const backupStateAnnotation = 'bramble.dev/backup-state'
export const lastBackupAnnotation = 'bramble.dev/last-backup'
export const backupFailureAnnotation = 'bramble.dev/backup-failure'
/** On a PersistentVolume: the backup that its data is made from. Removed when the data is there. */
export const restoreAnnotation = 'bramble.dev/restore-from'
export const restoreFailureAnnotation = 'bramble.dev/restore-failure'

const Mode = oneOf('live', 'hooks', 'stopped')
export type BackupMode = Described<typeof Mode>
const backupModes: readonly string[] = ['live', 'hooks', 'stopped']

const VolumeBackupSchema = object({
  id: text,
  /** `begin`: pods are brought to rest. `write`: the data is sent. `end`: pods go on. */
  phase: oneOf('begin', 'write', 'end'),
  mode: Mode,
  to: text,
  startedAt: text,
  /** What was measured. */
  bytes: optional(integer),
  /** In the phase `end`: what was made, or why nothing was. */
  made: optional(object({ name: text, bytes: integer, base: optional(text), mark: text })),
  why: optional(text),
})
export type VolumeBackup = Described<typeof VolumeBackupSchema>

const LastBackupSchema = object({
  name: text,
  to: text,
  mark: text,
  time: text,
  bytes: integer,
  mode: Mode,
  /** The last one that has everything. */
  full: object({ id: text, name: text, time: text, bytes: integer }),
})
export type LastBackup = Described<typeof LastBackupSchema>

const BackupFailureSchema = object({ time: text, why: text, count: integer })
export type BackupFailure = Described<typeof BackupFailureSchema>

const VolumeRestoreSchema = object({ id: text, from: text, name: text })
export type VolumeRestore = Described<typeof VolumeRestoreSchema>

const longest = 4_096

function written<const S extends TSchema>(
  { metadata: { annotations = {} } }: Pick<PersistentVolume, 'metadata'>,
  name: string,
  schema: S,
): Described<S> | undefined {
  const found = annotations[name]
  if (found === undefined || found.length > longest) return undefined
  const decoded = decode(schema, parseJson(found))
  return decoded.ok ? decoded.value : undefined
}

/** undefined: none is being made. */
export function backupOf(volume: PersistentVolume): VolumeBackup | undefined {
  const found = written(volume, backupStateAnnotation, VolumeBackupSchema)
  return found !== undefined && isMoveID(found.id) ? found : undefined
}

export function lastBackupOf(volume: PersistentVolume): LastBackup | undefined {
  return written(volume, lastBackupAnnotation, LastBackupSchema)
}

export function backupFailureOf(volume: PersistentVolume): BackupFailure | undefined {
  return written(volume, backupFailureAnnotation, BackupFailureSchema)
}

/** undefined: its data is there, or comes from elsewhere. */
export function restoreOf(volume: PersistentVolume): VolumeRestore | undefined {
  const found = written(volume, restoreAnnotation, VolumeRestoreSchema)
  return found !== undefined && isMoveID(found.id) ? found : undefined
}

export function isBackupMode(text: string): text is BackupMode {
  return backupModes.includes(text)
}

/** While it is made with stopped pods, and until its node has confirmed that they may start again. */
export function backupOrders(volume: PersistentVolume): readonly NodeVolumeOrder[] {
  const backup = backupOf(volume)
  const { name = '', uid = '' } = volume.metadata
  const { local, claimRef } = volume.spec ?? {}
  const pool = poolOfVolume(volume)
  if (backup?.mode !== 'stopped' || pool === undefined || local === undefined) return []
  return [
    {
      ...{ kind: backup.phase === 'end' ? 'release' : 'hold', volume: name, uid, pool },
      folder: local.path?.split('/').at(-1) ?? '',
      ...(claimRef?.name && { claim: `${claimRef.namespace ?? ''}/${claimRef.name}` }),
      ...(claimRef?.uid && { claimUID: claimRef.uid }),
      move: { id: backup.id, round: 1 },
    },
  ]
}
