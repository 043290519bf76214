/**
 * The maintenance of a fleet as it is stored: a ConfigMap. The operator's command writes the rules, the controller how far it is, each
 * under keys of its own.
 */
import type { ConfigMap } from '../../../api/config-map.ts'
import { decode } from '../../../api/decode.ts'
import {
  isMaintenancePausedByOperator,
  type MaintenanceStatus,
  maintenanceFields,
  maintenancePauses,
} from '../../../api/node/fleet-maintenance.ts'
import { double, object, optional, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { newResume } from '../rollouts/operator-resume.ts'
import { type MaintenanceRules, readMaintenanceRules } from './maintenance-rules.ts'
import type { MaintenanceState } from './next-maintenance.ts'

const StateSchema = object({ paused: optional(text), resumedMs: optional(double), resumedAt: optional(text) })

export type StoredMaintenance = { readonly rules: MaintenanceRules; readonly state: MaintenanceState }

/** Undefined: none was started. A text: why the object cannot be used. `nowMs`: what resumes that are new count from; who only shows it needs none. */
export function readMaintenance(
  { data = {} }: Pick<ConfigMap, 'data'>,
  nowMs = 0,
): StoredMaintenance | string | undefined {
  const written = data[maintenanceFields.rules]
  if (written === undefined) return undefined
  const rules = readMaintenanceRules(parseJson(written))
  if (typeof rules === 'string') return `the field "rules" cannot be used: ${rules}`
  const decoded = decode(StateSchema, parseJson(data[maintenanceFields.state] ?? ''))
  return { rules, state: withOperator(decoded.ok ? decoded.value : {}, data, nowMs) }
}

/** A pause of the operator holds until it is resumed; one of the controller until an operator has resumed it since. */
function withOperator(
  state: MaintenanceState,
  data: { readonly [key: string]: string },
  nowMs: number,
): MaintenanceState {
  const resumed = newResume(state, data[maintenanceFields.resumedAt], nowMs) ?? state
  const why = data[maintenanceFields.pause]
  return why === undefined ? resumed : { ...resumed, paused: why }
}

/** Why the controller pauses the maintenance. Undefined: it does not, or an operator pauses it, too. */
export function failedMaintenance(map: Pick<ConfigMap, 'data'>): string | undefined {
  const found = readMaintenance(map)
  return typeof found === 'object' && !isMaintenancePausedByOperator(map) ? found.state.paused : undefined
}

/** What the controller writes. A pause of the operator is not made one of the controller's. */
export function maintenanceData(
  { data = {} }: Pick<ConfigMap, 'data'>,
  { paused, ...rest }: MaintenanceState,
  status: MaintenanceStatus,
): { readonly [key: string]: string } {
  const kept = paused !== undefined && paused !== data[maintenanceFields.pause] ? { ...rest, paused } : rest
  return { [maintenanceFields.state]: JSON.stringify(kept), [maintenanceFields.status]: JSON.stringify(status) }
}

/** What the operator's commands write; null removes a key. `start` again changes the rules; failures stay, so that a person resumes them. */
export const maintenanceCommands = {
  start: (rules: MaintenanceRules) => ({ [maintenanceFields.rules]: JSON.stringify(rules) }),
  ...maintenancePauses,
}
