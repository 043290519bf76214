/** A CronJob on a controller whose date jumps: with the real kubectl, without nodes, so that its Jobs stay and can be counted. */
import { existsSync, readdirSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import tap, { test } from 'tap'
import type { Job } from '../api/batch/job.ts'
import { startController, temporaryFolder } from './support/fleet.ts'
import { skipWithout } from './support/missing-parts.ts'
import { eventually } from './support/wait.ts'

tap.setTimeout(600_000)

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/** A controller notices within ten seconds that its date has jumped. */
const soonMs = 15_000
const patience = { withinMs: 150_000, everyMs: 1000 }
const library = fakingLibrary()

test('a date that jumps starts one Job for all that were missed, and none twice', {
  skip: skipWithout('libfaketime', library !== undefined),
}, async (t) => {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'date')
  /** Sets the controller's clock this much ahead, plus up to a minute, so that the next minute begins soon. */
  const setDate = async (laterMs: number) => {
    const offsetMs = laterMs + untilMinuteMs(Date.now()) - soonMs
    await writeFile(`${file}.new`, `${offsetMs < 0 ? '-' : '+'}${Math.abs(offsetMs) / 1000}\n`)
    await rename(`${file}.new`, file)
  }
  await setDate(0)
  // The clock that measures durations stays what it is.
  const faked = { FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' }
  const env = { LD_PRELOAD: library, ...faked }
  const { kubectl } = await startController(t, { dataDir: join(folder, 'controller'), env })
  /** When the Jobs were due, in order. */
  const times = async (): Promise<readonly number[]> => {
    const jobs: readonly Job[] = JSON.parse(await kubectl('get', 'jobs', '-o', 'json')).items
    const due = 'batch.kubernetes.io/cronjob-scheduled-timestamp'
    return jobs.map(({ metadata }) => Date.parse(metadata.annotations?.[due] ?? '')).sort((a, b) => a - b)
  }
  const after = async (sinceMs: number) => (await times()).filter((timeMs) => timeMs > sinceMs)

  await kubectl('create', 'cronjob', 'tick', '--image=none', '--schedule=* * * * *', '--', 'true')
  await eventually('a minute begins', async () => (await times()).length === 1, patience)

  await setDate(200 * dayMs)
  const farMs = Date.now() + 200 * dayMs - 2 * minuteMs
  const far = await eventually(
    'it goes on',
    async () => ((await after(farMs)).length >= 2 ? after(farMs) : false),
    patience,
  )
  t.same(
    far.map((timeMs) => timeMs - (far[0] ?? 0)),
    far.map((_, index) => index * minuteMs),
    'the last one that was missed, and one each minute from then on',
  )
  t.match(await kubectl('get', 'events'), /TooManyMissedTimes +cronjob\/tick/)
  const before = (await times()).filter((timeMs) => timeMs < farMs)
  t.ok(before.length <= 2, 'none of the days between')

  // Two minutes after the first Job: the minute between was not due while the date was wrong.
  await setDate(2 * minuteMs)
  const near = await eventually(
    'it goes on by the right date',
    async () => {
      const seen = (await times()).filter((timeMs) => timeMs < farMs)
      return seen.length > before.length && seen
    },
    patience,
  )
  t.equal(near.length, before.length + 1)
  t.ok((near.at(-1) ?? 0) > (before.at(-1) ?? 0) + minuteMs, 'no time is done again, or made up for')
  t.equal(new Set(await times()).size, (await times()).length)
})

function untilMinuteMs(nowMs: number): number {
  return minuteMs - (nowMs % minuteMs)
}

function fakingLibrary(): string | undefined {
  const folders = readdirSync('/usr/lib').filter((name) => name.endsWith('-linux-gnu'))
  return folders.map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`).find(existsSync)
}
