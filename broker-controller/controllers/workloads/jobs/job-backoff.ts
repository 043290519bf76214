/** How long a Job waits before it replaces failed pods (pkg/controller/job/backoff_utils.go). */
/**
 * Kept in memory only, as in Kubernetes: after a restart of the controller it begins again. No time in it is later than when it was noticed: the
 * pods' times are those of nodes, and the controller's date may have been set back since.
 */
export type BackoffRecord = {
  /** In a row. */
  readonly failures: number
  readonly lastFailureMs?: number
  /** By UID: when pods were noticed that have failed in the future, by their own time. */
  readonly noticedMs?: ReadonlyMap<string, number>
}

const firstMs = 10_000
const longestMs = 10 * 60_000

/** With the times at which pods have ended since: a success ends the row, and only failures after it count. */
export function nextBackoff(
  record: Omit<BackoffRecord, 'noticedMs'>,
  ended: { readonly successes: readonly number[]; readonly failures: readonly number[] },
  nowMs: number,
): BackoffRecord {
  const { lastFailureMs, ...row } = rowAfter(record, ended.successes, ended.failures)
  return lastFailureMs === undefined ? row : { ...row, lastFailureMs: Math.min(lastFailureMs, nowMs) }
}

/** When a pod that failed at `failedMs` was noticed; undefined: its own time will do. `beforeMs`: what this gave before. */
export function noticedAtMs(beforeMs: number | undefined, failedMs: number, nowMs: number): number | undefined {
  return failedMs > nowMs || beforeMs !== undefined ? Math.min(beforeMs ?? nowMs, nowMs) : undefined
}

function rowAfter(record: BackoffRecord, successes: readonly number[], failures: readonly number[]): BackoffRecord {
  if (successes.length === 0) {
    if (failures.length === 0) return record
    return { failures: record.failures + failures.length, lastFailureMs: latest(failures) }
  }
  const lastSuccessMs = latest(successes)
  const later = failures.filter((ms) => ms > lastSuccessMs)
  return later.length === 0 ? { failures: 0 } : { failures: later.length, lastFailureMs: latest(later) }
}

/** 10 s after the first failure, twice as long after each one, ten minutes at most. 0: it may be replaced now. `lastFailureMs`: not later than `nowMs`. */
export function backoffLeftMs({ failures, lastFailureMs = 0 }: BackoffRecord, nowMs: number): number {
  if (failures === 0) return 0
  const waitMs = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30))
  return Math.max(0, waitMs - (nowMs - lastFailureMs))
}

function latest(times: readonly number[]): number {
  return times.reduce((a, b) => Math.max(a, b), 0)
}
