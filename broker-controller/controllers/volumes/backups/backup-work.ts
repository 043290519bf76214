/** What is done for a backup: the data goes to its folder, and commands are run in its pods. */

import { type BackupRules, backupRules, baseOf } from '../../../../api/backups/backup-due.ts'
import { backupName, manifestOf, signedManifest } from '../../../../api/backups/backup-manifest.ts'
import type { BackupRead, BackupStore } from '../../../../api/backups/backup-sessions.ts'
import { backupTarget } from '../../../../api/backups/backup-target.ts'
import {
  backupNowAnnotation,
  type LastBackup,
  lastBackupOf,
  type VolumeBackup,
} from '../../../../api/backups/volume-backup.ts'
import { moveRateOf } from '../../../../api/storage/volume-move.ts'
import { poolOfVolume } from '../../../../api/storage/volume-place.ts'
import { expectBackupPlace } from '../../../backups/nas-of-backups.ts'
import type { BackupKeys } from '../../../own-certificates/backup-keys.ts'
import type { BackupPlace } from '../../../sessions/backup-place.ts'
import { copyBackup, type NewBackup } from '../../../sessions/backup-streams.ts'
import { runInPod } from '../../../sessions/pod-command.ts'
import { podIn } from '../../../sessions/pod-in-session.ts'
import type { StoredPod } from '../../../store/store.ts'
import type { StoredVolume } from '../volume-index.ts'
import { hookOf } from './backup-hooks.ts'
import type { BackupSourcesOfFleet } from './backup-sources.ts'
import type { VolumeBackupNeeds } from './volume-backup-needs.ts'

export type MadeBackupOfVolume = NonNullable<VolumeBackup['made']>

/** In all these pods. Rejects with the error of the last one that must not fail. */
export async function runHooks(
  needs: VolumeBackupNeeds,
  pods: readonly StoredPod[],
  when: 'pre' | 'post',
  signal: AbortSignal,
): Promise<undefined> {
  let failed: unknown
  for (const pod of pods) {
    const hook = hookOf(pod, when)
    if (hook === undefined) continue
    const command = { node: pod.spec.nodeName ?? '', pod: podIn(pod), ...hook }
    await runInPod(command, needs, signal).catch((error: unknown) => {
      needs.log.warn('A command for a backup failed', { pod: pod.metadata.name, when, error })
      if (!hook.mayFail) failed = error
    })
    // What was frozen goes on, whatever becomes of the others.
    if (failed !== undefined && when === 'pre') break
  }
  if (failed !== undefined) throw failed
  return undefined
}

export type BackupWork = {
  readonly volume: StoredVolume
  readonly backup: VolumeBackup
  /** One that failed may have failed because the one before it is gone: the next has everything. */
  readonly isFirst: boolean
}

/** Resolves when the backup is in its folder. */
export async function makeVolumeBackup(
  needs: VolumeBackupNeeds,
  { volume, backup, isFirst }: BackupWork,
  sources: BackupSourcesOfFleet,
  signal: AbortSignal,
): Promise<MadeBackupOfVolume> {
  const keys = await needs.backupKeys()
  const target = backupTarget(backup.to)
  if ('problem' in target) throw new Error(target.problem)
  const near = sources.holders.of(poolOfVolume(volume))?.node.metadata.name
  const to = await expectBackupPlace(target, near, needs)
  const last = lastBackupOf(volume)
  const base = isFirst ? baseOf(last, { to: backup.to, nowMs: Date.parse(backup.startedAt) }) : undefined
  const isWanted = volume.metadata.annotations?.[backupNowAnnotation] !== undefined
  const mark = sources.markOf(backup.to, { last, isWanted })
  return copied(needs, { volume, backup, to, keys, base, mark, keep: keepOf(volume, sources) }, sources, signal)
}

function keepOf(volume: StoredVolume, sources: BackupSourcesOfFleet): string | undefined {
  const rules = backupRules({
    claim: sources.claimOf(volume),
    storageClass: sources.classOf(volume),
    volume: { metadata: { annotations: { [backupNowAnnotation]: '-', ...volume.metadata.annotations } } },
  })
  return rules !== undefined && 'keep' in rules ? rules.keep : undefined
}

type Making = {
  readonly volume: StoredVolume
  readonly backup: VolumeBackup
  readonly to: BackupPlace
  readonly keys: BackupKeys
  readonly base: LastBackup['full'] | undefined
  readonly mark: string | undefined
  readonly keep: BackupRules['keep']
}

async function copied(
  needs: VolumeBackupNeeds,
  making: Making,
  sources: BackupSourcesOfFleet,
  signal: AbortSignal,
): Promise<MadeBackupOfVolume> {
  const { volume, backup, to, keys } = making
  const pool = poolOfVolume(volume) ?? ''
  const node = sources.holders.of(pool)?.node.metadata.name
  if (node === undefined) throw new Error(`no node has the pool ${pool}`)
  const name = backupName(claimText(volume), Date.parse(backup.startedAt), backup.id)
  const { manifest, mark } = await copyBackup(
    {
      from: { node, read: sourceOf(making, pool) },
      to: { node: to.node, store: destinationOf(making, name) },
      backup: descriptionOf(making, name),
      manifest: (facts) => manifestOf(facts, keys.sign(signedManifest(facts))),
      bytesPerSecond: moveRateOf(volume),
      progress: (bytes) => void needs.storage.copiedBytes.set(volume.metadata.uid, bytes),
    },
    needs,
    signal,
  )
  // It may be one that was made before this process began.
  const problem = keys.problemOf(manifest)
  if (problem !== undefined) throw new Error(`${backup.to} has a backup ${name} already, and ${problem}`)
  return { name, bytes: manifest.bytes, mark, ...(manifest.base !== undefined && { base: manifest.base }) }
}

function claimText({ spec }: StoredVolume): string {
  return `${spec?.claimRef?.namespace ?? ''}/${spec?.claimRef?.name ?? ''}`
}

/** What the node of the data reads. */
function sourceOf({ volume, backup, base }: Making, pool: string): BackupRead {
  const { claimRef, local } = volume.spec ?? {}
  return {
    ...{ uid: volume.metadata.uid, pool, folder: local?.path?.split('/').at(-1) ?? '' },
    ...{ claim: claimText(volume), id: backup.id },
    ...(claimRef?.uid && { claimUID: claimRef.uid }),
    ...(base && { since: base.id }),
    ...(backup.mode === 'stopped' && { held: backup.id }),
  }
}

/** Where the node of the backups writes it. */
function destinationOf({ volume, backup, to, base, mark, keep }: Making, name: string): BackupStore {
  return {
    ...{ path: to.path, uid: volume.metadata.uid, id: backup.id, name },
    ...(to.nas && { nas: to.nas }),
    ...(mark !== undefined && { mark }),
    ...(base && { base: base.name }),
    ...(keep !== undefined && { keep }),
  }
}

/** What its manifest states of it. */
function descriptionOf({ volume, backup, base, keys }: Making, name: string): NewBackup {
  const { capacity = {}, storageClassName, accessModes = [] } = volume.spec ?? {}
  return {
    ...{ name, claim: claimText(volume), volume: volume.metadata.name, accessModes: accessModes.map(String) },
    ...{ time: backup.startedAt, consistency: backup.mode },
    ...(storageClassName && { storageClass: storageClassName }),
    ...(capacity['storage'] !== undefined && { capacity: String(capacity['storage']) }),
    ...(base && { base: base.name }),
    recipient: keys.recipient,
  }
}
