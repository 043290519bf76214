/** What `GET /backups` answers: the backups of volumes in the folders of the fleet. See docs/storage.md. */
import { type Described, integer, list, object, optional, text } from '../schema.ts'

const FleetBackupSchema = object({
  name: text,
  /** Its folder: `NODE:PATH`, `pv/NAME` or `class/NAME`. */
  at: text,
  claim: text,
  volume: text,
  storageClass: optional(text),
  capacity: optional(text),
  accessModes: list(text),
  time: text,
  consistency: text,
  /** The backup of which it has the changes. */
  base: optional(text),
  bytes: integer,
  /** How much it is when it is restored, with its base; about. */
  contentBytes: integer,
  /** Why it cannot be restored. */
  problem: optional(text),
})
export type FleetBackup = Described<typeof FleetBackupSchema>

export const FleetBackupsSchema = object({
  backups: list(FleetBackupSchema),
  /** Folders that cannot be read, with the reason. */
  problems: list(text),
})
export type FleetBackups = Described<typeof FleetBackupsSchema>
