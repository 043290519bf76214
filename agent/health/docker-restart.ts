/** Decides when a Docker that does not answer is restarted, and when the restart is repeated. */
import { longestBackoffMs } from '../../daemon/backoff.ts'
import type { DockerSilence } from './docker.ts'

export type Restarts = {
  /** Consecutive restarts, each without a long healthy period after it. */
  readonly count: number
  /** The next restart is not before this time, on the monotonic clock. */
  readonly nextMs: number
  /** Since when Docker answers; undefined while it does not. */
  readonly wellSinceMs: number | undefined
}

export const noRestarts: Restarts = { count: 0, nextMs: 0, wellSinceMs: undefined }

/** Time for a manual restart or an upgrade to finish. A hung Docker may only be slow, so it gets longer. */
const patienceMs = { refuses: 20_000, hangs: 45_000 }
/** The first and the longest wait after a restart. A Docker that cannot start is not restarted all day. */
const firstWaitMs = 2 * 60_000
const longestWaitMs = 60 * 60_000
/** After Docker was healthy for this long, the waits start from the first one again. */
const trustedAfterMs = 10 * 60_000

export function seenWell(restarts: Restarts, nowMs: number): Restarts {
  const wellSinceMs = restarts.wellSinceMs ?? nowMs
  return nowMs - wellSinceMs >= trustedAfterMs ? { ...noRestarts, wellSinceMs } : { ...restarts, wellSinceMs }
}

export function isRestartDue({ nextMs }: Restarts, { sinceMs, kind }: DockerSilence, nowMs: number): boolean {
  return sinceMs >= patienceMs[kind] && nowMs >= nextMs
}

export function restarted({ count }: Restarts, nowMs: number): Restarts {
  const waitMs = longestBackoffMs(count, { firstMs: firstWaitMs, maxMs: longestWaitMs })
  return { count: count + 1, nextMs: nowMs + waitMs, wellSinceMs: undefined }
}
