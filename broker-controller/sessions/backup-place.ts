/** Where the folder of backups is in a session: on a node, or on a NAS that the node mounts for it. */
import type { BackupNas } from '../../api/backups/backup-sessions.ts'
import { targetText } from '../../api/backups/backup-target.ts'

/** `path`: on the node, or how messages name the folder of the NAS. */
export type BackupPlace = { readonly node: string; readonly path: string; readonly nas?: BackupNas }

/** As people write it. */
export function placeText({ node, path, nas }: BackupPlace): string {
  return nas === undefined ? targetText({ node, path }) : path
}
