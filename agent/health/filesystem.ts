/** Checks that the filesystems that the agent and the system need are writable. */
import { type ConditionCheck, fine, type HealthFinding, seconds, wrong } from './condition-check.ts'

export type FilesystemState = {
  /** The use of the filesystem. */
  readonly role: 'root' | 'data directory'
  readonly path: string
  /** `/dev/mmcblk0p2` */
  readonly device: string
  readonly isReadOnly: boolean
  /** Read-only by design: mounted so by the configuration, and without any error. */
  readonly isMeantSo: boolean
  /** Errors that the filesystem has counted since it was created; undefined where it does not count them. */
  readonly errors: number | undefined
  /** Why the last query or write failed; undefined: it succeeded. */
  readonly failure: string | undefined
}

const cardRemedy = 'Save what you can; check the card or disk and its supply, run fsck, or replace it'

export function readOnlyFilesystem(readings: readonly FilesystemState[]): HealthFinding | undefined {
  if (readings.length === 0) return undefined
  const bad = readings.flatMap(trouble)
  const [first] = bad
  if (first !== undefined) return wrong(first.reason, sentence(bad.map(({ text }) => text).join('; ')), cardRemedy)
  const isRootReadOnly = readings.some(({ role, isReadOnly, isMeantSo }) => role === 'root' && isReadOnly && isMeantSo)
  return fine(
    'FilesystemsWritable',
    isRootReadOnly
      ? 'The root filesystem is read-only by configuration; the data directory can be written to'
      : 'The filesystems that the agent and the system write to are writable',
  )
}

function trouble(reading: FilesystemState): readonly { readonly reason: string; readonly text: string }[] {
  const { role, path, device, isReadOnly, isMeantSo, failure, errors } = reading
  const name = role === 'root' ? 'the root filesystem' : `the filesystem of ${path}`
  if (failure !== undefined) return [{ reason: 'FilesystemFails', text: `${name} (${device}) fails: ${failure}` }]
  if (!isReadOnly || isMeantSo) return []
  const counted = errors !== undefined && errors > 0 ? ` after ${errors} ${errors === 1 ? 'error' : 'errors'}` : ''
  return [{ reason: 'FilesystemReadOnly', text: `${name} (${device}) is read-only${counted}` }]
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

export const filesystemCheck: ConditionCheck<{ filesystems(): Promise<readonly FilesystemState[]> }> = {
  type: 'ReadOnlyFilesystem',
  name: 'filesystems',
  unknown: 'No mounts found on this machine',
  periodMs: 5 * seconds,
  holdMs: 10 * seconds,
  unfit: true,
  look: async (source) => readOnlyFilesystem(await source.filesystems()),
}

/** A line of the kernel's log that is a reason to probe with a write. */
export function isDiskTrouble(kernelLine: string): boolean {
  return /I\/O error|Remounting filesystem read-only|-fs error \(device |-fs \([^)]*\): (?:error|Remounting)|mmc\d+: .*(?:timeout|error)/i.test(
    kernelLine,
  )
}
