/** What is being done with the data of a volume, for people: its move, its backup, or that it comes from one. Pure. */

import type { FleetVolume } from '../storage/fleet-volumes.ts'
import { byteText } from '../text/byte-text.ts'

export type VolumeProgress = {
  readonly text: string
  /** Between 0 and 1; undefined: not known. */
  readonly part?: number
}

const movePhases: Readonly<Record<string, string>> = {
  waiting: 'waits for the nodes',
  copy: 'copies, pods run',
  hold: 'stops the pods',
  delta: 'copies what has changed, and compares',
  place: 'puts the copy in its place',
  clean: 'puts the old copy in the trash',
  rollback: 'removes the copy: the data stays where it was',
}

const backupPhases: Readonly<Record<string, string>> = {
  waiting: 'waits for the nodes, or for another backup',
  begin: 'brings the pods to rest',
  write: 'writes',
  end: 'lets the pods go on',
}

export function moveProgress({ phase, bytes, copiedBytes }: NonNullable<FleetVolume['move']>): VolumeProgress {
  const text = movePhases[phase] ?? phase
  const isCopying = phase === 'copy' || phase === 'delta'
  if (copiedBytes === undefined || !isCopying) return { text }
  // What has changed since was not measured.
  if (bytes === undefined || phase === 'delta') return { text: `${text}: ${byteText(copiedBytes)}` }
  const part = bytes > 0 && { part: Math.min(1, copiedBytes / bytes) }
  return { text: `${text}: ${byteText(copiedBytes)} of ${byteText(bytes)}`, ...part }
}

/** How much it is when it is compressed is not known before its end. */
export function backupProgress({ phase, bytes, copiedBytes }: NonNullable<FleetVolume['backup']>): VolumeProgress {
  const text = backupPhases[phase] ?? phase
  if (phase !== 'write' || copiedBytes === undefined) return { text }
  const of = bytes === undefined ? '' : `, of ${byteText(bytes)}`
  return { text: `${text}: ${byteText(copiedBytes)}, compressed${of}` }
}

export function restoreProgress({ copiedBytes, why }: NonNullable<FleetVolume['restore']>): VolumeProgress {
  if (why !== undefined) return { text: `is tried again: ${why}` }
  return { text: copiedBytes === undefined ? 'begins' : `writes: ${byteText(copiedBytes)}, compressed` }
}

/** undefined: nothing is being done. */
export function volumeProgress({ move, backup, restore }: FleetVolume): VolumeProgress | undefined {
  const named = (what: string, { text, ...rest }: VolumeProgress) => ({ text: `${what} ${text}`, ...rest })
  if (move !== undefined) {
    const { text, ...rest } = moveProgress(move)
    return named(`The move to ${move.to}`, { text: move.why === undefined ? text : `${text}: ${move.why}`, ...rest })
  }
  if (restore !== undefined) return named(`The restore of ${restore.name}`, restoreProgress(restore))
  if (backup === undefined) return undefined
  return named(backup.to === undefined ? 'The backup' : `The backup to ${backup.to}`, backupProgress(backup))
}
