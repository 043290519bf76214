/** The crash back-off: when a container that ended starts again (pkg/kubelet/kuberuntime/kuberuntime_manager.go, doBackOff). */

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never'

export function restartPolicyOf(policy: string | undefined): RestartPolicy {
  return policy === 'OnFailure' || policy === 'Never' ? policy : 'Always'
}

export function shouldRestart(policy: RestartPolicy, exitCode: number): boolean {
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0)
}

/** The back-off state of a container. Times are on the monotonic clock. */
export type CrashBackoff = { readonly waitMs: number; readonly restartedAtMs: number }

const firstWaitMs = 10_000
const maxWaitMs = 300_000
/** An exit this long after the last restart resets the back-off. */
const forgetAfterMs = 600_000

/** The wait after an exit: none before the first restart, then 10, 20, 40 … 300 s. */
export function crashWaitMs(last: CrashBackoff | undefined, exitedAtMs: number): number {
  return last === undefined || isOver(last, exitedAtMs) ? 0 : last.waitMs
}

/**
 * The wait after a stop for a failed probe: none where the instance before ended at least the back-off ago, or where there is none.
 * SyncPod stops the container and starts it at once; doBackOff sees the containers as they were before the stop.
 */
export function stoppedWaitMs(
  last: CrashBackoff | undefined,
  exitedAtMs: number,
  beforeExitedAtMs: number | undefined,
): number {
  if (beforeExitedAtMs === undefined) return 0
  return exitedAtMs - beforeExitedAtMs >= crashWaitMs(last, beforeExitedAtMs) ? 0 : crashWaitMs(last, exitedAtMs)
}

/** The state after a restart at `nowMs` that follows an exit at `exitedAtMs`. */
export function afterRestart(last: CrashBackoff | undefined, exitedAtMs: number, nowMs: number): CrashBackoff {
  const grows = last !== undefined && !isOver(last, exitedAtMs)
  return { waitMs: grows ? Math.min(maxWaitMs, last.waitMs * 2) : firstWaitMs, restartedAtMs: nowMs }
}

function isOver(last: CrashBackoff, exitedAtMs: number): boolean {
  return exitedAtMs - last.restartedAtMs > forgetAfterMs
}

/** `10s`, `2m40s`, as Kubernetes writes durations in messages. */
export function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}
