/** Turns evidence over time into a condition that does not flap. */
import { fine, type HealthFinding } from './condition-check.ts'

export type Settled = {
  readonly shown: HealthFinding
  /** Since when there has been evidence without interruption, and when there last was any; on the monotonic clock. */
  readonly wrongSinceMs: number | undefined
  readonly lastWrongMs: number | undefined
}

export type Patience = { readonly riseMs?: number; readonly holdMs: number }

/** Undefined: no condition, because there is no source. A condition that is True is kept for its hold time even then. */
export function settle(
  before: Settled | undefined,
  found: HealthFinding | undefined,
  nowMs: number,
  { riseMs = 0, holdMs }: Patience,
): Settled | undefined {
  const isShown = before?.shown.status === 'True'
  if (found?.status === 'True') {
    const wrongSinceMs = before?.wrongSinceMs ?? nowMs
    const evidence = { wrongSinceMs, lastWrongMs: nowMs }
    if (isShown || nowMs - wrongSinceMs >= riseMs) return { shown: found, ...evidence }
    return { shown: before?.shown ?? notYet(found), ...evidence }
  }
  const isHeld = isShown && before.lastWrongMs !== undefined && nowMs - before.lastWrongMs < holdMs
  if (isHeld) return { ...before, wrongSinceMs: undefined }
  return found && { shown: found, wrongSinceMs: undefined, lastWrongMs: undefined }
}

function notYet({ reason }: HealthFinding): HealthFinding {
  return fine(`${reason}NotProven`, 'There are signs of it, not for long enough yet')
}
