/** Thresholds met over time → pressure conditions that do not flap, and the thresholds for which a pod is evicted. */
import type { PressureType } from '../../api/node.ts'
import type { Observation } from './observations.ts'
import { amountOf, pressureOf, type Threshold, thresholdsMet } from './thresholds.ts'

/** When each pressure was last met, on the monotonic clock. Every pressure in the map is set. */
export type LastMet = ReadonlyMap<PressureType, number>

/** Pressure is set at once; it is cleared after its thresholds were not met for `transitionMs`. */
export function observePressure(
  last: LastMet,
  met: readonly PressureType[],
  nowMs: number,
  transitionMs: number,
): LastMet {
  const next = new Map([...last].filter(([, at]) => nowMs - at < transitionMs))
  for (const type of met) next.set(type, nowMs)
  return next
}

export type Situation = {
  readonly lastMet: LastMet
  /** Since when each threshold has been met without interruption. */
  readonly firstMet: ReadonlyMap<Threshold, number>
  /** Thresholds met for their grace period, the most urgent first. */
  readonly inForce: readonly Threshold[]
}

export const noPressure: Situation = { lastMet: new Map(), firstMet: new Map(), inForce: [] }

export type PressureSettings = { readonly thresholds: readonly Threshold[]; readonly transitionMs: number }

/** `warned`: pressures that are set for another reason than a threshold. */
export function nextSituation(
  before: Situation,
  observed: readonly Observation[],
  { thresholds, transitionMs }: PressureSettings,
  nowMs: number,
  warned: readonly PressureType[] = [],
): Situation {
  const unresolved = thresholdsMet(before.inForce, observed, true)
  const met = [...new Set([...thresholdsMet(thresholds, observed), ...unresolved])]
  const firstMet = new Map(met.map((threshold) => [threshold, before.firstMet.get(threshold) ?? nowMs]))
  const inForce = met.filter((threshold) => nowMs - (firstMet.get(threshold) ?? nowMs) >= (threshold.graceMs ?? 0))
  const pressures = [...met.map(({ signal }) => pressureOf(signal)), ...warned]
  return {
    lastMet: observePressure(before.lastMet, pressures, nowMs, transitionMs),
    firstMet,
    inForce: inForce.sort((a, b) => urgency(a) - urgency(b)),
  }
}

/** Memory first, because nothing else works without it. Hard thresholds precede soft ones of the same signal. */
function urgency({ signal, graceMs }: Threshold): number {
  return (signal === 'memory.available' ? 0 : 2) + (graceMs === undefined ? 0 : 1)
}

/** The share of the distance to a threshold that counts as near. */
const nearPart = 0.1

/** A signal is so near a threshold, or falls so fast, that it may meet it within `withinMs`. */
export function isNear(
  thresholds: readonly Threshold[],
  before: readonly Observation[],
  now: readonly Observation[],
  spans: { readonly sinceMs: number; readonly withinMs: number },
): boolean {
  return thresholds.some(({ signal, value }) => {
    const current = now.find((one) => one.signal === signal)
    if (current === undefined) return false
    const limit = amountOf(value, current.capacity)
    const left = current.available - limit
    if (left <= limit * nearPart) return true
    const last = before.find((one) => one.signal === signal)
    if (last === undefined || spans.sinceMs <= 0) return false
    const fallPerMs = (last.available - current.available) / spans.sinceMs
    return fallPerMs > 0 && left / fallPerMs <= spans.withinMs
  })
}
