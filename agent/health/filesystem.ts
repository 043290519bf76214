/** Can the machine still write where it must? */
import { type Finding, fine, wrong } from './finding.ts'

export type FilesystemReading = {
  /** What it is to us. */
  readonly role: 'root' | 'data directory'
  readonly path: string
  /** `/dev/mmcblk0p2` */
  readonly device: string
  readonly isReadOnly: boolean
  /** Read-only on purpose: it is written so where mounts are configured, and nothing went wrong. */
  readonly isMeantSo: boolean
  /** How many errors the filesystem has counted in its life; undefined where it does not count. */
  readonly errors: number | undefined
  /** Why the last look at it, or the last try to write, failed; undefined: it did not. */
  readonly failure: string | undefined
}

const cardRemedy = 'save what you can; check the card or disk and its supply, run fsck, or replace it'

export function readOnlyFilesystem(readings: readonly FilesystemReading[]): Finding | undefined {
  if (readings.length === 0) return undefined
  const bad = readings.flatMap(trouble)
  const [first] = bad
  if (first === undefined) return fine('FilesystemsWritable', 'What must be written to can be written to')
  return wrong(first.reason, `${bad.map(({ text }) => text).join('; ')}: ${cardRemedy}`)
}

function trouble(reading: FilesystemReading): readonly { readonly reason: string; readonly text: string }[] {
  const { role, path, device, isReadOnly, isMeantSo, failure, errors } = reading
  const name = role === 'root' ? 'the root filesystem' : `the filesystem of ${path}`
  if (failure !== undefined) return [{ reason: 'FilesystemFails', text: `${name} (${device}) fails: ${failure}` }]
  if (!isReadOnly || isMeantSo) return []
  const counted = errors !== undefined && errors > 0 ? ` after ${errors} ${errors === 1 ? 'error' : 'errors'}` : ''
  return [{ reason: 'FilesystemReadOnly', text: `${name} (${device}) is read-only${counted}` }]
}

/** Lines of the kernel after which it is worth trying whether a write still works. */
export function tellsOfDiskTrouble(kernelLine: string): boolean {
  return /I\/O error|Remounting filesystem read-only|-fs error \(device |-fs \([^)]*\): (?:error|Remounting)|mmc\d+: .*(?:timeout|error)/i.test(
    kernelLine,
  )
}
