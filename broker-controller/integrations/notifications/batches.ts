/** Decides when problems are sent: after they lasted, together, and again when they are over. */
import type { FleetProblem } from './problems.ts'

export type BatchSettings = {
  /** A problem that is over before is not sent. */
  readonly delayMs: number
  /** Time to collect problems that begin together, as when an access point fails. */
  readonly groupWaitMs: number
  /** A problem that returns within this time was not over: a container runs between two crashes, for at most 5 min of back-off. */
  readonly resolveDelayMs: number
  /** Between two messages. */
  readonly minIntervalMs: number
}

export const defaultBatchSettings: BatchSettings = {
  delayMs: 60_000,
  groupWaitMs: 30_000,
  resolveDelayMs: 10 * 60_000,
  minIntervalMs: 60_000,
}

type Tracked = {
  readonly problem: FleetProblem
  readonly sinceMs: number
  readonly isSent: boolean
  /** Undefined: it lasts. */
  readonly goneSinceMs: number | undefined
}

export type BatchState = {
  readonly tracked: ReadonlyMap<string, Tracked>
  /** Since when something waits for being sent. */
  readonly waitingSinceMs: number | undefined
  readonly sentMs: number
}

export const noProblems: BatchState = {
  tracked: new Map(),
  waitingSinceMs: undefined,
  sentMs: Number.NEGATIVE_INFINITY,
}

export type Batch = { readonly firing: readonly FleetProblem[]; readonly resolved: readonly FleetProblem[] }

/** `problems`: those of now, by key. `batch` is undefined while nothing is to be sent. Times are monotonic milliseconds. */
export function nextBatch(
  { tracked: before, waitingSinceMs, sentMs }: BatchState,
  problems: ReadonlyMap<string, FleetProblem>,
  nowMs: number,
  settings: BatchSettings,
): { readonly state: BatchState; readonly batch: Batch | undefined } {
  const tracked = observed(before, problems, nowMs)
  const due = [...tracked].filter(([, one]) => isDue(one, nowMs, settings))
  if (due.length === 0) return { state: { tracked, waitingSinceMs: undefined, sentMs }, batch: undefined }
  const sinceMs = waitingSinceMs ?? nowMs
  if (nowMs - sinceMs < settings.groupWaitMs || nowMs - sentMs < settings.minIntervalMs) {
    return { state: { tracked, waitingSinceMs: sinceMs, sentMs }, batch: undefined }
  }
  const after = new Map(tracked)
  for (const [key, one] of due) {
    if (one.isSent) after.delete(key)
    else after.set(key, { ...one, isSent: true })
  }
  const sent = (isSent: boolean) => due.filter(([, one]) => one.isSent === isSent).map(([, { problem }]) => problem)
  return {
    state: { tracked: after, waitingSinceMs: undefined, sentMs: nowMs },
    batch: { firing: sent(false), resolved: sent(true) },
  }
}

function observed(
  before: ReadonlyMap<string, Tracked>,
  problems: ReadonlyMap<string, FleetProblem>,
  nowMs: number,
): ReadonlyMap<string, Tracked> {
  const tracked = new Map<string, Tracked>()
  for (const [key, problem] of problems) {
    const known = before.get(key)
    tracked.set(key, {
      problem,
      sinceMs: known?.sinceMs ?? nowMs,
      isSent: known?.isSent ?? false,
      goneSinceMs: undefined,
    })
  }
  for (const [key, known] of before) {
    // One that was not sent is forgotten.
    if (!problems.has(key) && known.isSent) tracked.set(key, { ...known, goneSinceMs: known.goneSinceMs ?? nowMs })
  }
  return tracked
}

function isDue({ sinceMs, isSent, goneSinceMs }: Tracked, nowMs: number, settings: BatchSettings): boolean {
  if (goneSinceMs !== undefined) return nowMs - goneSinceMs >= settings.resolveDelayMs
  return !isSent && nowMs - sinceMs >= settings.delayMs
}
