/** What the loop of backups, and its parts, need of the controller. */
import type { BackupKeys } from '../../../own-certificates/backup-keys.ts'
import type { SessionBoard } from '../../../sessions/session-board.ts'
import type { RestoreHold } from '../../../store/checkpoints/restore-hold.ts'
import type { EventRecorder } from '../../../store/event-recorder.ts'
import type { InformerNeeds } from '../../../store/informer.ts'
import type { StorageBoard } from '../../../usage/storage-board.ts'

export type VolumeBackupNeeds = InformerNeeds & {
  readonly events: EventRecorder
  readonly storage: Pick<StorageBoard, 'reportOf' | 'onReport' | 'copiedBytes'>
  readonly sessions: Pick<SessionBoard, 'open'>
  readonly backupKeys: () => Promise<BackupKeys>
  readonly hold?: RestoreHold
}
