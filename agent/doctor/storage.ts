/** Checks of free space, and of programs that wear the memory card. */
import { byteText } from '../../api/text/byte-text.ts'
import { diskShortageRemedy } from '../eviction/disk-shortages.ts'
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'
import type { Assignment } from './systemd-settings.ts'

export type SpaceReading = {
  /** One filesystem may have several uses: `/, the data directory`. */
  readonly path: string
  readonly availableBytes: number
  readonly capacityBytes: number
  /** 0: the filesystem does not count inodes. */
  readonly inodes: number
  readonly inodesFree: number
}

/** Free percent of the capacity. */
const space = { least: 10, short: 15 }
const inodes = { least: 5, short: 10 }

export function spaceFindings(readings: readonly SpaceReading[]): readonly DoctorFinding[] {
  const of = (left: (one: SpaceReading) => number, words: (one: SpaceReading) => string, limits: typeof space) =>
    readings.flatMap((one) => (left(one) < limits.short ? [{ percent: left(one), text: words(one) }] : []))
  const bySpace = of(
    ({ availableBytes, capacityBytes }) => percent(availableBytes, capacityBytes),
    ({ path, availableBytes, capacityBytes }) =>
      `${path} has ${byteText(availableBytes)} free of ${byteText(capacityBytes)}`,
    space,
  )
  const byInodes = of(
    ({ inodesFree, inodes: all }) => percent(inodesFree, all),
    ({ path, inodesFree, inodes: all }) => `${path} has room for ${inodesFree} more files, of ${all}`,
    inodes,
  )
  const most = readings.map(
    ({ path, availableBytes, capacityBytes }) => `${path}: ${byteText(availableBytes)} of ${byteText(capacityBytes)}`,
  )
  return [
    shortage('disk-space', bySpace, space.least) ?? ok('disk-space', `Free: ${most.join(', ')}`),
    shortage('inodes', byInodes, inodes.least) ?? ok('inodes', 'There is room for many more files'),
  ]
}

const makeRoom =
  "Find what is large ('du -xh / | sort -h | tail'); 'docker system df' shows what images and volumes use"

function shortage(
  check: string,
  short: readonly { percent: number; text: string }[],
  least: number,
): DoctorFinding | undefined {
  if (short.length === 0) return undefined
  const found = short.map(({ text }) => text).join('; ')
  return short.some(({ percent: left }) => left < least)
    ? problem(check, found, makeRoom)
    : warning(check, found, makeRoom)
}

/** 100 % where the filesystem does not count it. */
function percent(left: number, all: number): number {
  return all === 0 ? 100 : (left / all) * 100
}

/** `shortages`: sentences of `diskShortages`. */
export function evictionFinding(shortages: readonly string[]): DoctorFinding {
  const check = 'eviction'
  if (shortages.length === 0) return ok(check, 'Free space of the disks is above the eviction thresholds')
  return problem(check, shortages.join('; '), diskShortageRemedy)
}

export type JournalReading = {
  readonly hasJournal: boolean
  /** All values of `Storage`, in the order in which systemd reads them. */
  readonly assignments: readonly Assignment[]
  /** The folder `/var/log/journal` exists. */
  readonly hasFolder: boolean
  /** `mmcblk0` if the journal is on a memory card or eMMC. */
  readonly card: string | undefined
}

export function journalFinding({ hasJournal, assignments, hasFolder, card }: JournalReading): DoctorFinding {
  const check = 'journal'
  if (!hasJournal) return unknown(check, 'systemd-journald is not installed here')
  const winner = assignments.findLast(({ value }) => /^(auto|volatile|persistent|none)$/.test(value))
  const storage = winner?.value ?? 'auto'
  const isKept = storage === 'persistent' || (storage === 'auto' && hasFolder)
  const who = winner === undefined ? 'as by default' : `set by ${winner.file}`
  if (!isKept)
    return ok(check, `The system's log is kept in memory (${who}), which does not wear the card; a restart clears it`)
  if (card === undefined) return ok(check, `The system's log is kept on disk (${who})`)
  return warning(
    check,
    `The system's log is written to ${card} all the time (${who}), which wears it`,
    'Put Storage=volatile below [Journal] in /etc/systemd/journald.conf.d/zz-bramble.conf and restart systemd-journald, unless you need the log of earlier boots',
  )
}
