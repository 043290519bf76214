/** The backups of volumes in the folders that volumes and classes name, or in one that is given. Nodes are asked at each request. */
import { setImmediate } from 'node:timers/promises'
import { ApiError } from '../../../api/api-error.ts'
import type { BackupManifest } from '../../../api/backups/backup-manifest.ts'
import { backupTarget, targetText } from '../../../api/backups/backup-target.ts'
import type { FleetBackup, FleetBackups } from '../../../api/backups/fleet-backups.ts'
import { backupToAnnotation, lastBackupOf } from '../../../api/backups/volume-backup.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { withDeadline } from '../../../daemon/deadline.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { expectBackupPlace } from '../../backups/nas-of-backups.ts'
import type { BackupKeys } from '../../own-certificates/backup-keys.ts'
import { listBackups } from '../../sessions/backup-streams.ts'
import type { SessionBoard } from '../../sessions/session-board.ts'
import type { Store } from '../../store/store.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'

export type FleetBackupsNeeds = {
  readonly store: Store
  readonly clock: Clock
  readonly sessions: Pick<SessionBoard, 'open'>
  readonly storage?: Pick<StorageBoard, 'reportOf'>
  readonly backupKeys: () => Promise<BackupKeys>
}

const listMs = 30_000
/** One after the other: each may take long. */
const mostFolders = 16
/** Each has a MAC to check. */
const rowsInTurn = 32

/** `at`: `NODE:PATH`, `pv/NAME` or `class/NAME` of the folder; undefined: all that are known. Throws the ApiError of a refusal. */
export async function fleetBackups(at: string | undefined, needs: FleetBackupsNeeds): Promise<FleetBackups> {
  const { sessions, backupKeys, clock, store } = needs
  const keys = await backupKeys()
  const given = at === undefined ? [...(await knownFolders(store))].sort().slice(0, mostFolders) : [at]
  const [backups, problems]: [FleetBackup[], string[]] = [[], []]
  for (const written of given) {
    const target = backupTarget(written)
    if ('problem' in target) {
      if (at !== undefined) throw new ApiError('BadRequest', target.problem)
      problems.push(target.problem)
      continue
    }
    try {
      const place = await expectBackupPlace(target, undefined, needs)
      const all = await withDeadline(
        listMs,
        undefined,
        (signal) => listBackups(place, { sessions, clock }, signal),
        'The folder was not read',
      )
      const sizes = new Map(all.map(({ name, contentBytes }) => [name, contentBytes]))
      for (const [count, one] of all.entries()) {
        backups.push(rowOf(one, { at: targetText(target), keys, sizes }))
        if ((count + 1) % rowsInTurn === 0) await setImmediate()
      }
    } catch (error) {
      problems.push(`${targetText(target)}: ${messageOf(error)}`)
    }
  }
  return { backups, problems }
}

async function knownFolders(store: Store): Promise<ReadonlySet<string>> {
  const [volumes, classes] = await Promise.all([store.list('persistentvolumes'), store.list('storageclasses')])
  const written = [...volumes.items, ...classes.items].map(({ metadata }) => metadata.annotations?.[backupToAnnotation])
  const last = volumes.items.map((volume) => lastBackupOf(volume)?.to)
  return new Set([...written, ...last].flatMap((one) => one || []))
}

type RowFacts = {
  readonly at: string
  readonly keys: BackupKeys
  readonly sizes: ReadonlyMap<string, number>
}

function rowOf(manifest: BackupManifest, { at, keys, sizes }: RowFacts): FleetBackup {
  const { kind: _, read: __, mac: ___, sha256: ____, recipient: _____, ...shown } = manifest
  const hasBase = shown.base === undefined || sizes.has(shown.base)
  const problem =
    keys.problemOf(manifest) ?? (hasBase ? undefined : `it has the changes of ${shown.base}, which is gone`)
  const contentBytes = shown.contentBytes + (sizes.get(shown.base ?? '') ?? 0)
  return { ...shown, at, contentBytes, ...(problem !== undefined && { problem }) }
}
