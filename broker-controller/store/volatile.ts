/** Finds changes that need not be persisted: the node repeats them within seconds or minutes. */
import type { ResourceName } from '../../api/resources.ts'
import type { Change } from './changes.ts'
import { equalJSON } from './equal-json.ts'

/**
 * Leases, and the status of a node that differs from the one before in `lastHeartbeatTime` only: a node refreshes it every
 * 5 minutes, and each refresh would write its whole object.
 */
export function isVolatile(
  resource: ResourceName,
  { type, object, previous }: Change,
  what: 'whole' | 'status',
): boolean {
  if (resource === 'leases') return true
  if (resource !== 'nodes' || what !== 'status' || type !== 'MODIFIED' || previous === undefined) return false
  return equalJSON(object.status, previous.status, 'lastHeartbeatTime')
}
