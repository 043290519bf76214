/** A forecast as text for people, and as JSON. */
import { formatDuration } from '../../daemon/duration.ts'
import type { Forecast } from './forecast.ts'
import { isBelow, type MachineOutlook, type WorkloadOutlook } from './outlook.ts'

/** `notes`: what differs from the fleet that is meant. */
export function forecastText(forecast: Forecast, notes: readonly string[]): string {
  const { durationMs, seed, lines, workloads, machines } = forecast
  const below = workloads.filter(isBelow)
  const sections = [
    `${formatDuration(durationMs)} of ${machines.length} machines and ${workloads.length} workloads, seed ${seed}`,
    ...notes.map((note) => `Note: ${note}`),
    '',
    'TIME LINE',
    ...(lines.length === 0 ? ['Nothing happens.'] : lines.map(({ atMs, text }) => `${clockText(atMs)}  ${text}`)),
    '',
    ...table(
      ['WORKLOAD', 'WANTED', 'READY AT LEAST', 'RUNNING AT LEAST', 'BELOW WANTED', 'PLACED', 'AT THE END'],
      workloads.map(workloadRow),
    ),
    '',
    ...table(['MACHINE', 'NOT READY', 'EVICTED', 'PODS'], machines.map(machineRow)),
    '',
    ...(below.length === 0
      ? ['At the end all workloads have the pods that they want.']
      : ['At the end these workloads have fewer pods than they want:', ...below.flatMap(belowLines)]),
  ]
  return `${sections.map((line) => line.trimEnd()).join('\n')}\n`
}

export function forecastJSON(forecast: Forecast, notes: readonly string[]): string {
  const isAsWanted = !forecast.workloads.some(isBelow)
  return `${JSON.stringify({ ...forecast, notes, isAsWanted }, null, 2)}\n`
}

function workloadRow(one: WorkloadOutlook): readonly string[] {
  const { workload, wanted, readyLeast, readyLeastAtMs, runningLeast, belowWantedMs, placed, readyAtEnd } = one
  const isJob = workload.startsWith('Job ')
  const least = readyLeast < wanted && !isJob ? `${readyLeast} (${clockText(readyLeastAtMs)})` : `${readyLeast}`
  return [
    ...[workload, `${wanted}`, isJob ? '-' : least, isJob ? '-' : `${runningLeast}`],
    ...[isJob ? '-' : formatDuration(belowWantedMs), `${placed}`, `${readyAtEnd} of ${wanted}`],
  ]
}

function machineRow({ machine, notReady, evicted, firstEvictedAtMs, podsAtBeginning, podsAtEnd }: MachineOutlook) {
  const spans = notReady.map(({ fromMs, toMs }) => `${clockText(fromMs)}-${toMs === undefined ? '' : clockText(toMs)}`)
  const first = firstEvictedAtMs === undefined ? '' : ` (from ${clockText(firstEvictedAtMs)})`
  return [machine, spans.join(', ') || 'never', `${evicted}${first}`, `${podsAtBeginning} -> ${podsAtEnd}`]
}

function belowLines(one: WorkloadOutlook): readonly string[] {
  return [`  ${one.workload}: ${one.readyAtEnd} of ${one.wanted}`, ...one.problems.map((problem) => `    ${problem}`)]
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
}

/** `01:10:05`, or `26:00:00`. */
function clockText(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  return [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
}
