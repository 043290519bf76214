/** Backups of volumes as sessions see them. `agent/adapters/disk/backups/disk-backups.ts` implements it on files and programs. */
import type { BackupNas, BackupRead, BackupRestore, BackupStore } from '../../../api/backups/backup-sessions.ts'

export type Pieces = () => Promise<Buffer | undefined>
export type SendPiece = (piece: Buffer) => Promise<void>

/** What comes with a backup that is stored. */
export type IncomingBackup = {
  /** The folder is there: its identity, and the manifest of the backup if it was made before. Then nothing comes. */
  readonly opened: (mark: string, made: string | undefined) => Promise<void>
  /** The next bytes of the archive; undefined: all are here. It throws if the sender ended early. */
  readonly next: Pieces
  /** After the archive: the text of its manifest. */
  readonly manifest: () => Promise<string>
}

/** `path`: on this machine, or how the folder of the NAS is called. */
export type FolderOfBackups = { readonly path: string; readonly nas?: BackupNas }

/** All throw VolumeError where something is wrong that a person can change. */
export interface VolumeBackups {
  /** Sends the data of a volume as a compressed archive. Gives how much it was before it was compressed. */
  read(wanted: BackupRead, send: SendPiece, signal: AbortSignal): Promise<number>
  /** Keeps a backup in a folder, whole or not at all, and removes those that need not be kept: gives their names. */
  store(wanted: BackupStore, incoming: IncomingBackup, signal: AbortSignal): Promise<readonly string[]>
  /** Sends the manifests in the folder, one on each line. */
  list(folder: FolderOfBackups, send: SendPiece, signal: AbortSignal): Promise<void>
  /** Sends the archive of a backup. */
  fetch(wanted: FolderOfBackups & { readonly name: string }, send: SendPiece, signal: AbortSignal): Promise<void>
  /** Makes the folder of a volume from archives, of which each ends with an undefined piece. Does nothing if it was made before. */
  restore(wanted: BackupRestore, next: Pieces, signal: AbortSignal): Promise<void>
}
