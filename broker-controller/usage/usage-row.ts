/** What a node used, as the dashboard shows it: whole percents and degrees. */
import { secondsOf } from '../../api/dashboard/card-words.ts'
import type { UsageRow } from '../../api/dashboard/dashboard-messages.ts'
import type { Node } from '../../api/node.ts'
import { milliValue, quantityToNumber } from '../../api/quantity.ts'
import type { ReceivedUsage } from './usage-board.ts'

/** null where the node does not report a value. */
export function usageRow({ node: used, machine = {}, startTime }: ReceivedUsage, { status }: Node): UsageRow {
  const { cpu, memory } = status?.capacity ?? {}
  const nanoCores = cpu === undefined ? undefined : milliValue(cpu) * 1e6
  const memoryBytes = memory === undefined ? undefined : quantityToNumber(memory)
  const { celsius, load, diskUsedBytes, diskCapacityBytes } = machine
  return [
    percent(used.cpu, nanoCores),
    percent(used.memory, memoryBytes),
    celsius === undefined || !Number.isFinite(celsius) ? null : Math.round(celsius),
    percent(diskUsedBytes, diskCapacityBytes),
    load === undefined || !Number.isFinite(load) ? null : Math.round(load * 10) / 10,
    secondsOf(startTime) ?? null,
  ]
}

/** A change that is worth sending: at rest a processor moves by a percent or two all the time. */
export function isWorthSending(last: UsageRow | undefined, next: UsageRow): boolean {
  return last === undefined || next.some((value, i) => differs(last[i] ?? null, value, leastChange[i] ?? 0))
}

/** In the order of UsageRow; the time of the boot is computed by the node and wavers. */
const leastChange = [4, 2, 2, 1, 0.5, 60]

function differs(last: number | null, next: number | null, least: number): boolean {
  return last === null || next === null ? last !== next : Math.abs(next - last) >= least
}

function percent(part: number | undefined, whole: number | undefined): number | null {
  if (part === undefined || whole === undefined || !(whole > 0) || !(part >= 0)) return null
  return Math.min(100, Math.round((100 * part) / whole))
}
