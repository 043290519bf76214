/** How long a Job waits before it replaces failed pods (pkg/controller/job/backoff_utils.go). */
/** Failures in a row. Kept in memory only, as in Kubernetes: after a restart of the controller the row begins again. */
export type BackoffRecord = { readonly failures: number; readonly lastFailureMs?: number }

const firstMs = 10_000
const longestMs = 10 * 60_000

/** With the times at which pods have ended since: a success ends the row, and only failures after it count. */
export function nextBackoff(
  record: BackoffRecord,
  successes: readonly number[],
  failures: readonly number[],
): BackoffRecord {
  if (successes.length === 0) {
    if (failures.length === 0) return record
    return { failures: record.failures + failures.length, lastFailureMs: latest(failures) }
  }
  const lastSuccessMs = latest(successes)
  const later = failures.filter((ms) => ms > lastSuccessMs)
  return later.length === 0 ? { failures: 0 } : { failures: later.length, lastFailureMs: latest(later) }
}

/** 10 s after the first failure, twice as long after each one, ten minutes at most. 0: it may be replaced now. */
export function backoffLeftMs({ failures, lastFailureMs = 0 }: BackoffRecord, nowMs: number): number {
  if (failures === 0) return 0
  const waitMs = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30))
  // A clock that was set back must not make the wait longer than it is.
  return Math.max(0, Math.min(waitMs, waitMs - (nowMs - lastFailureMs)))
}

function latest(times: readonly number[]): number {
  return times.reduce((a, b) => Math.max(a, b), 0)
}
