/** Thresholds met over time → pressure that does not flap. */
import type { PressureType } from '../../api/node.ts'

/** When each pressure was last met, on the monotonic clock. What is in here is under pressure. */
export type LastMet = ReadonlyMap<PressureType, number>

/** Pressure shows at once; it is withdrawn only after staying away for `transitionMs`. */
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
