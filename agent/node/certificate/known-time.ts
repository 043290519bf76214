/**
 * A lower bound of the present time. A board without a battery starts in the past; its own certificate, the certificates it
 * was shown and a small file are later than that. The loop writes the file when the agent stops, and otherwise once in thirty
 * days.
 */
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { KnownTime } from '../../../daemon/server-check.ts'
import { certificateDates } from './certificate-dates.ts'

/** The file that keeps the time over restarts. */
export interface TimeFile {
  /** Milliseconds since 1970; 0 if nothing is saved or the file is damaged. */
  read(): Promise<number>
  save(ms: number): Promise<void>
}

export type KnownTimeNeeds = {
  readonly file: TimeFile
  /** The node's own, PEM: it was issued in the past. */
  readonly certificate: string
  /** The system's clock follows a time server. */
  readonly isClockRight: () => boolean
  readonly clock: Clock
  readonly log: Log
}

export interface KnownTimeKeeper extends KnownTime, Loop {
  /** How far the system's clock is behind the last known time; 0 if it is not. */
  behindMs(): number
}

/** It was at least `ms` on the wall clock when the monotonic clock showed `atMs`. */
export type KnownInstant = { readonly ms: number; readonly atMs: number }

const periodMs = 3600_000
/** Cards wear: see `isWorthSaving`. */
const runningMs = 30 * 24 * 3600_000
const stoppingMs = 3600_000

/** The lower bound now, in milliseconds since 1970. */
export function earliestAt({ ms, atMs }: KnownInstant, monotonicMs: number): number {
  return ms + monotonicMs - atMs
}

/** The lower bound after a trusted source gave a time: an earlier time changes nothing. */
export function laterOf(known: KnownInstant, wallMs: number, monotonicMs: number): KnownInstant {
  return wallMs > earliestAt(known, monotonicMs) ? { ms: wallMs, atMs: monotonicMs } : known
}

/** Whether the saved time is wrong by at least `leastMs`, in either direction. */
export function isWorthSaving(earliestMs: number, savedMs: number, leastMs: number): boolean {
  return Math.abs(earliestMs - savedMs) >= leastMs
}

/** Only its loop writes the file. */
export async function openKnownTime(needs: KnownTimeNeeds): Promise<KnownTimeKeeper> {
  const { file, isClockRight, clock, log } = needs
  let savedMs = await file.read()
  const issuedMs = certificateDates(needs.certificate).validFrom.getTime() || 0
  let known: KnownInstant = { ms: Math.max(savedMs, issuedMs), atMs: clock.monotonicMs() }

  const earliestMs = () => earliestAt(known, clock.monotonicMs())
  const behindMs = () => Math.max(0, earliestMs() - clock.wallMs())
  const save = async (leastMs: number) => {
    // Also backwards: this corrects a wrong time that was once accepted.
    if (isClockRight()) known = { ms: clock.wallMs(), atMs: clock.monotonicMs() }
    const nowMs = earliestMs()
    if (!isWorthSaving(nowMs, savedMs, leastMs)) return
    try {
      await file.save(nowMs)
      savedMs = nowMs
    } catch (error) {
      log.debug('Last known time not saved', { error })
    }
  }

  return {
    name: 'known-time',
    isClockRight,
    earliestMs,
    learn: (wallMs) => {
      known = laterOf(known, wallMs, clock.monotonicMs())
    },
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
        await clock.sleep(periodMs, signal)
        await save(signal.aborted ? stoppingMs : runningMs)
      }
    },
  }
}
