/** How much of what costs a server more than its client one connection of HTTP/2 may do: a budget that refills with time. */

export type FrameLimits = {
  /** At once. */
  readonly burst: number
  readonly perSecond: number
}

/** Streams that the client gives up (CVE-2023-44487). A program that ends cancels all its watches, a hundred at most. */
export const resetLimits: FrameLimits = { burst: 200, perSecond: 20 }

/** PING and SETTINGS. client-go sends a PING where a connection is silent for 30 s, and SETTINGS once. */
export const controlLimits: FrameLimits = { burst: 100, perSecond: 5 }

export interface FrameBudget {
  /** Whether one more is within the limits. `nowMs` never decreases. */
  spend(nowMs: number): boolean
}

export function frameBudget({ burst, perSecond }: FrameLimits): FrameBudget {
  let left = burst
  let sinceMs: number | undefined
  return {
    spend(nowMs) {
      left = Math.min(burst, left + ((nowMs - (sinceMs ?? nowMs)) / 1000) * perSecond)
      sinceMs = nowMs
      if (left < 1) return false
      left -= 1
      return true
    },
  }
}
