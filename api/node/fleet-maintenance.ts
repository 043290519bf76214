/**
 * The maintenance of a fleet's machines, as it is stored in a ConfigMap. An operator writes what is to be done, the controller how far it
 * is, each under keys of its own.
 */
import type { ConfigMap } from '../config-map.ts'
import { decode } from '../decode.ts'
import { type Described, integer, list, object, oneOf, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'

export const maintenanceKey = { namespace: 'kube-system', name: 'bramble-maintenance' } as const

export const maintenanceFields = {
  rules: 'rules',
  state: 'state',
  status: 'status',
  pause: 'pause',
  resumedAt: 'resumedAt',
} as const

type Data = Pick<ConfigMap, 'data'>

export function isMaintenanceMap({ metadata }: Pick<ConfigMap, 'metadata'>): boolean {
  return metadata.namespace === maintenanceKey.namespace && metadata.name === maintenanceKey.name
}

const rows = list(object({ node: text, phase: text, since: text, message: text }))
const StatusSchema = object({
  phase: oneOf('Idle', 'Waiting', 'Working', 'Paused'),
  message: text,
  /** `due`: nodes that wait for their turn. */
  counts: object({
    ...{ nodes: integer, securityUpdates: integer, rebootRequired: integer, due: integer },
    ...{ active: integer, failed: integer, unable: integer },
  }),
  /** Nodes under maintenance, those that failed, and those that need maintenance and cannot have it: the first of each. */
  active: rows,
  failed: rows,
  unable: rows,
})
export type MaintenanceStatus = Described<typeof StatusSchema>
export type MaintenanceRow = MaintenanceStatus['active'][number]

/** Undefined: the controller has not decided yet. */
export function readMaintenanceStatus({ data = {} }: Data): MaintenanceStatus | undefined {
  const decoded = decode(StatusSchema, parseJson(data[maintenanceFields.status] ?? ''))
  return decoded.ok ? decoded.value : undefined
}

export function isMaintenancePausedByOperator({ data = {} }: Data): boolean {
  return data[maintenanceFields.pause] !== undefined
}

/** What operators write; null removes a field. */
export const maintenancePauses = {
  pause: (why: string) => ({ [maintenanceFields.pause]: why }),
  resume: (now: string) => ({ [maintenanceFields.pause]: null, [maintenanceFields.resumedAt]: now }),
}
