/** A volume as it is written at each step of its backup. Pure. */
import {
  backupFailureAnnotation,
  backupFailureOf,
  backupNowAnnotation,
  backupStateAnnotation,
  type LastBackup,
  lastBackupAnnotation,
  restoreAnnotation,
  restoreFailureAnnotation,
  type VolumeBackup,
} from '../../../../api/backups/volume-backup.ts'
import type { StoredVolume } from '../volume-index.ts'

export function withBackup(volume: StoredVolume, backup: VolumeBackup): StoredVolume {
  return withAnnotations(volume, { [backupStateAnnotation]: JSON.stringify(backup) })
}

/** `keepsWish`: it is made again. */
export function withoutBackup(
  volume: StoredVolume,
  result: { readonly last: LastBackup } | { readonly why: string; readonly time: string; readonly keepsWish: boolean },
): StoredVolume {
  if ('last' in result) {
    return withAnnotations(volume, {
      ...{ [backupStateAnnotation]: undefined, [backupNowAnnotation]: undefined, [backupFailureAnnotation]: undefined },
      [lastBackupAnnotation]: JSON.stringify(result.last),
    })
  }
  const { why, time, keepsWish } = result
  const count = (backupFailureOf(volume)?.count ?? 0) + 1
  return withAnnotations(volume, {
    ...{ [backupStateAnnotation]: undefined, [backupFailureAnnotation]: JSON.stringify({ time, why, count }) },
    ...(!keepsWish && { [backupNowAnnotation]: undefined }),
  })
}

/** Its data is there. */
export function withoutRestore(volume: StoredVolume): StoredVolume {
  return withAnnotations(volume, { [restoreAnnotation]: undefined, [restoreFailureAnnotation]: undefined })
}

export function withRestoreFailure(volume: StoredVolume, why: string): StoredVolume {
  return withAnnotations(volume, { [restoreFailureAnnotation]: why })
}

function withAnnotations(volume: StoredVolume, changes: Readonly<Record<string, string | undefined>>): StoredVolume {
  const all = Object.entries({ ...volume.metadata.annotations, ...changes })
  const annotations = Object.fromEntries(all.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])))
  return { ...volume, metadata: { ...volume.metadata, annotations } }
}
