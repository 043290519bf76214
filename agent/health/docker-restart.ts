/** Shall a Docker that does not answer be restarted, and when again if that did not help? */
import { longestBackoffMs } from '../../daemon/backoff.ts'
import type { DockerSilence } from './docker.ts'

export type Restarts = {
  /** In a row, without Docker having been well for long since. */
  readonly count: number
  /** Not before; on the monotonic clock. */
  readonly nextMs: number
  /** Since when Docker answers; undefined while it does not. */
  readonly wellSinceMs: number | undefined
}

export const noRestarts: Restarts = { count: 0, nextMs: 0, wellSinceMs: undefined }

/** Time for a restart by hand or an upgrade to finish. A hung Docker may only be slow: it gets longer. */
const patienceMs = { refuses: 20_000, hangs: 45_000 }
/** The first time to wait after a restart, and the longest: a Docker that cannot start is not to be started all day. */
const firstWaitMs = 2 * 60_000
const longestWaitMs = 60 * 60_000
/** So long it must be well for the waits to begin again. */
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
