/**
 * The maintenance of a node's machine: what the controller keeps on the Node while it has the machine under maintenance. It is the lock,
 * too: so many nodes as are in a phase that is not an end are under maintenance.
 */
import { decode } from '../decode.ts'
import type { Node } from '../node.ts'
import { type Described, list, object, oneOf, optional, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'
import { isUpgradeID, type OsUpgrade } from './os-updates.ts'

/** Set by the controller: a MaintenanceRecord as JSON. */
export const maintenanceAnnotation = 'bramble.dev/maintenance'
/** Set by the controller with the cordon that is its own: only such a node is uncordoned after its maintenance. */
export const cordonedByAnnotation = 'bramble.dev/cordoned-by'
export const maintenanceOwner = 'maintenance'

const MaintenanceRecordSchema = object({
  id: text,
  phase: oneOf('Draining', 'Upgrading', 'Rebooting', 'Checking', 'Done', 'Failed', 'Abandoned', 'Postponed'),
  /** Since when it has been in this phase, RFC 3339. */
  since: text,
  /** The boot that the reboot ends, and when it was requested last. */
  bootID: optional(text),
  requestedAt: optional(text),
  /** Conditions of the machine's health that were True before: they do not count against it afterwards. */
  ailing: optional(list(text)),
  /** Since when it has been healthy in the phase Checking. */
  healthySince: optional(text),
  /** Why it failed, was abandoned after that, or was postponed by a pause. */
  reason: optional(text),
})
export type MaintenanceRecord = Described<typeof MaintenanceRecordSchema>
export type MaintenancePhase = MaintenanceRecord['phase']

/** Undefined: the node was never under maintenance, or the annotation cannot be read. */
export function maintenanceOf({ metadata }: Pick<Node, 'metadata'>): MaintenanceRecord | undefined {
  const decoded = decode(MaintenanceRecordSchema, parseJson(metadata.annotations?.[maintenanceAnnotation] ?? ''))
  return decoded.ok && isUpgradeID(decoded.value.id) ? decoded.value : undefined
}

/** The upgrade that the node has to carry out now; undefined: none. */
export function wantedUpgradeOf(node: Pick<Node, 'metadata'>): OsUpgrade | undefined {
  const record = maintenanceOf(node)
  return record?.phase === 'Upgrading' ? { id: record.id } : undefined
}

/** Whether the cordon of the node is one of the maintenance. */
export function isMaintenanceCordon({ metadata }: Pick<Node, 'metadata'>): boolean {
  return metadata.annotations?.[cordonedByAnnotation] === maintenanceOwner
}
