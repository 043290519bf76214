/** Finds changes that need not be persisted: they are repeated within seconds or minutes. */
import { leaderLeaseKey, nodeLeaseNamespace } from '../../api/lease.ts'
import type { ResourceName } from '../../api/resources.ts'
import type { Change } from './changes.ts'
import { equalJSON } from './equal-json.ts'
import type { ObjectKey } from './store.ts'

/**
 * The Leases that the controller writes itself: those of nodes, which heartbeats restore after a start, and the one that shows which
 * controller leads. They are in memory only. Those of clients are stored like everything else.
 */
export function isVolatileLease(resource: string, { namespace = '', name = '' }: Partial<ObjectKey>): boolean {
  if (resource !== 'leases') return false
  return namespace === nodeLeaseNamespace || (namespace === leaderLeaseKey.namespace && name === leaderLeaseKey.name)
}

/**
 * The status of a node that differs from the one before in `lastHeartbeatTime` only: a node refreshes it every
 * 5 minutes, and each refresh would write its whole object.
 */
export function isVolatile(
  resource: ResourceName,
  { type, object, previous }: Change,
  what: 'whole' | 'status',
): boolean {
  if (resource !== 'nodes' || what !== 'status' || type !== 'MODIFIED' || previous === undefined) return false
  return equalJSON(object.status, previous.status, 'lastHeartbeatTime')
}
