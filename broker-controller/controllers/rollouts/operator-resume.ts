/** When an operator has resumed what failures had paused. Pure. */

export type ResumedState = {
  /** Failures up to then no longer count: an operator has resumed it since. */
  readonly resumedMs?: number
  /** The operator's time of that: only a newer resume is another one. */
  readonly resumedAt?: string
}

/**
 * The state after the resume that is written as `resumedAt`; undefined: it is known already, or there is none. By the date of the controller, as
 * the failures are: that of the operator's machine may be another one.
 */
export function newResume(
  state: ResumedState,
  resumedAt: string | undefined,
  nowMs: number,
): Required<ResumedState> | undefined {
  const writtenMs = Date.parse(resumedAt ?? '')
  // Earlier versions kept the operator's time alone.
  const isKnown = resumedAt === state.resumedAt || (state.resumedAt === undefined && writtenMs === state.resumedMs)
  return resumedAt === undefined || !Number.isFinite(writtenMs) || isKnown ? undefined : { resumedMs: nowMs, resumedAt }
}
