import { test } from 'tap'
import { type BackupKeep, backupKeep, type KeptBackup, removable } from './backup-retention.ts'

const none: BackupKeep = { last: 0, daily: 0, weekly: 0, monthly: 0 }
const backups = (times: readonly string[]): KeptBackup[] =>
  times.map((time) => ({ name: time, time: `${time.length === 10 ? `${time}T03:00:00` : time}Z` }))
const kept = (all: readonly KeptBackup[], keep: Partial<BackupKeep>, present = all[0]?.name ?? '') => {
  const gone = removable(all, { ...none, ...keep }, present)
  return all.map(({ name }) => name).filter((name) => !gone.includes(name))
}

test('what is kept is read as it is written', async (t) => {
  t.same(backupKeep('last=3'), { ...none, last: 3 })
  t.same(backupKeep(' last=3, daily = 7,weekly=4,monthly=6'), { last: 3, daily: 7, weekly: 4, monthly: 6 })
  for (const wrong of ['', '3', 'last', 'last=-1', 'hourly=2', 'last=3;daily=7', 'last=1001', 'last=0'])
    t.match(backupKeep(wrong), { problem: /last=/ }, wrong)
})

test('the last backups stay, and the last one of each day, week and month', async (t) => {
  const days = backups([
    '2026-11-29',
    '2026-11-28T23:00:00',
    '2026-11-28T01:00:00',
    '2026-11-23',
    '2026-11-22',
    '2026-10-31',
  ])
  const cases: readonly [Partial<BackupKeep>, readonly number[]][] = [
    [{ last: 1 }, [0]],
    [{ last: 3 }, [0, 1, 2]],
    [{ daily: 2 }, [0, 1]],
    [{ daily: 9 }, [0, 1, 3, 4, 5]],
    [{ weekly: 1 }, [0]],
    [{ weekly: 2 }, [0, 4]],
    [{ monthly: 2 }, [0, 5]],
    [{ last: 2, monthly: 2 }, [0, 1, 5]],
  ]
  for (const [keep, indexes] of cases)
    t.same(
      kept(days, keep),
      indexes.map((index) => days[index]?.name),
      JSON.stringify(keep),
    )
})

test('a backup with all data stays as long as one with its changes', async (t) => {
  const all = backups(['2026-11-29', '2026-11-28', '2026-11-27'])
  const [first, second, third] = all
  if (!first || !second || !third) return t.fail()
  t.same(kept([{ ...first, base: third.name }, second, third], { last: 1 }), [first.name, third.name])
})

test('the new backup stays if its date is the oldest, and dates of the future remove nothing else', async (t) => {
  const all = backups(['2016-01-01', '2026-11-28', '2026-11-27', '2036-01-01'])
  t.same(kept(all, { last: 2 }, '2016-01-01'), ['2016-01-01', '2026-11-28', '2036-01-01'])
  t.same(removable([], { ...none, last: 1 }, 'x'), [])
})
