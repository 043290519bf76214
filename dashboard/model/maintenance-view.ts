/** The maintenance of the machines, as the page shows it. */
import type { ConfigMap } from '../../api/config-map.ts'
import type { UrgencyLevel } from '../../api/dashboard/node-view.ts'
import { counted } from '../../api/dashboard/view-words.ts'
import {
  isMaintenancePausedByOperator,
  type MaintenanceRow,
  maintenanceFields,
  readMaintenanceStatus,
} from '../../api/node/fleet-maintenance.ts'

export type MaintenanceView = {
  readonly level: UrgencyLevel
  readonly text: string
  /** What is pending, then one line for each machine that failed, is under maintenance, or cannot have it. */
  readonly lines: readonly string[]
  /** What an operator may do with it. */
  readonly action: 'pause' | 'resume' | undefined
}

/** How many machines of each kind are named: the page lists them all below. */
const shownRows = 5

/** Undefined: no maintenance was started. */
export function maintenanceView(map: Pick<ConfigMap, 'data'>): MaintenanceView | undefined {
  if (map.data?.[maintenanceFields.rules] === undefined) return undefined
  const status = readMaintenanceStatus(map)
  if (status === undefined) return { level: 'idle', text: 'begins', lines: [], action: undefined }
  const { phase, message, counts, failed, active, unable } = status
  const isPaused = phase === 'Paused'
  const level = isPaused && !isMaintenancePausedByOperator(map) ? 'bad' : isPaused ? 'warn' : 'good'
  const { securityUpdates, rebootRequired } = counts
  return {
    level,
    text: `${phase}. ${message}`,
    lines: [
      ...(securityUpdates > 0 ? [`${counted(securityUpdates, 'machine')} with security updates`] : []),
      ...(rebootRequired > 0 ? [`${counted(rebootRequired, 'machine')} to be restarted`] : []),
      ...rowLines(failed, counts.failed),
      ...rowLines(active, counts.active),
      ...rowLines(unable, counts.unable),
    ],
    action: isPaused ? 'resume' : 'pause',
  }
}

function rowLines(rows: readonly MaintenanceRow[], count: number): readonly string[] {
  const shown = rows.slice(0, shownRows)
  const lines = shown.map(({ node, phase, message }) => `${node}: ${[phase, message].filter(Boolean).join(', ')}`)
  return count > shown.length ? [...lines, `and ${count - shown.length} more`] : lines
}
