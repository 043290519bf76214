/**
 * How late is it at least? A board without a battery wakes up in the past, and knows better: by its own certificate, by those
 * it was shown, and by a small file, written when the agent stops and otherwise once in thirty days.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { KnownTime } from '../../../daemon/server-check.ts'
import { lifeOf } from '../mqtt/link-trouble.ts'

export type KnownTimeNeeds = {
  readonly path: string
  /** Our own, PEM: it was made in the past. */
  readonly certificate: string
  /** The system's clock follows a time server. */
  readonly isClockRight: () => boolean
  readonly clock: Clock
  readonly log: Log
}

export interface KnownTimeKeeper extends KnownTime, Loop {
  /** How far the system's clock is behind what is known; 0 when it is not. */
  behindMs(): number
}

const lookMs = 3600_000
const writeMs = 30 * 24 * 3600_000
/** Worth a write when the agent stops. */
const worthMs = 3600_000

export function knownTimePath(dataDir: string): string {
  return join(dataDir, 'last-known-time')
}

/** Nothing is written but by its loop. */
export async function openKnownTime(needs: KnownTimeNeeds): Promise<KnownTimeKeeper> {
  const { path, isClockRight, clock, log } = needs
  let saved = await readTime(path)
  let known = { ms: Math.max(saved, lifeOf(needs.certificate).validFrom.getTime() || 0), atMs: clock.monotonicMs() }

  const earliestMs = () => known.ms + clock.monotonicMs() - known.atMs
  const learn = (wallMs: number) => {
    if (wallMs > earliestMs()) known = { ms: wallMs, atMs: clock.monotonicMs() }
  }
  const lookAtClock = () => {
    // Also backwards: who was told nonsense once must be able to forget it.
    if (isClockRight()) known = { ms: clock.wallMs(), atMs: clock.monotonicMs() }
  }
  const save = async (leastMs: number) => {
    lookAtClock()
    const nowMs = earliestMs()
    if (Math.abs(nowMs - saved) < leastMs) return
    try {
      const time = rfc3339(nowMs)
      await replaceFile(path, `${time} ${checksum(time)}\n`)
      saved = nowMs
    } catch (error) {
      log.debug('Last known time not written down', { error })
    }
  }
  const behindMs = () => Math.max(0, earliestMs() - clock.wallMs())

  return {
    name: 'known-time',
    isClockRight,
    earliestMs,
    learn,
    behindMs,
    async run(signal) {
      if (behindMs() > 0) {
        log.warn('The clock is behind the last known time; pods run, certificates are judged by that time', {
          clock: rfc3339(clock.wallMs()),
          known: rfc3339(earliestMs()),
          remedy: "See 'timedatectl', and that a time server can be reached",
        })
      }
      while (!signal.aborted) {
        await clock.sleep(lookMs, signal)
        await save(signal.aborted ? worthMs : writeMs)
      }
    },
  }
}

/** One flipped bit makes another century of a year, and no certificate good: without its right sum a time counts for nothing. */
async function readTime(path: string): Promise<number> {
  const [time = '', sum] = (await readFile(path, 'utf8').catch(() => '')).trim().split(' ')
  // Earlier agents wrote none.
  return sum === undefined || sum === checksum(time) ? Date.parse(time) || 0 : 0
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}
