/** Which backups of a claim stay. It counts backups, not time: a wrong date removes no more than a right one. Pure. */
import type { BackupManifest } from './backup-manifest.ts'

/** The last ones, and the last one of as many days, weeks and months that have any. */
export type BackupKeep = {
  readonly last: number
  readonly daily: number
  readonly weekly: number
  readonly monthly: number
}
export type KeptBackup = Pick<BackupManifest, 'name' | 'time' | 'base'>

const words = ['last', 'daily', 'weekly', 'monthly'] as const
const mostKept = 1_000
const dayMs = 24 * 3600_000

/** `last=3,daily=7,weekly=4`, or what is wrong. */
export function backupKeep(written: string): BackupKeep | { readonly problem: string } {
  const keep = { last: 0, daily: 0, weekly: 0, monthly: 0 }
  for (const part of written.split(',')) {
    const [word, count] = /^\s*(\w+)\s*=\s*(\d{1,4})\s*$/.exec(part)?.slice(1) ?? []
    const found = words.find((one) => one === word)
    const number = Number(count)
    if (found === undefined || number > mostKept)
      return { problem: `${JSON.stringify(written)} is not like last=3,daily=7,weekly=4,monthly=6` }
    keep[found] = number
  }
  return keep.last + keep.daily + keep.weekly + keep.monthly > 0
    ? keep
    : { problem: `${JSON.stringify(written)} keeps none: give at least last=1` }
}

/** The names of those that may go. `present`: the one that was just made stays, whatever its date. */
export function removable(backups: readonly KeptBackup[], keep: BackupKeep, present: string): readonly string[] {
  const latest = [...backups].sort((a, b) => Date.parse(b.time) - Date.parse(a.time) || (a.name < b.name ? 1 : -1))
  const kept = new Set([present, ...latest.slice(0, keep.last).map(({ name }) => name)])
  const keepLastOf = (count: number, periodOf: (ms: number) => string | number) => {
    const periods = new Set<string | number>()
    for (const { name, time } of latest) {
      const period = periodOf(Date.parse(time))
      if (periods.has(period)) continue
      if (periods.size === count) return
      periods.add(period)
      kept.add(name)
    }
  }
  keepLastOf(keep.daily, (ms) => Math.floor(ms / dayMs))
  // The first of January 1970 was a Thursday; weeks begin on Mondays.
  keepLastOf(keep.weekly, (ms) => Math.floor((ms / dayMs + 3) / 7))
  keepLastOf(keep.monthly, (ms) => new Date(ms).toISOString().slice(0, 7))
  for (const { name, base } of backups) if (kept.has(name) && base !== undefined) kept.add(base)
  return latest.flatMap(({ name }) => (kept.has(name) ? [] : [name]))
}
