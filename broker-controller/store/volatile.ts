/** Which changes need not outlive the process? Those that the node repeats in seconds or minutes anyway. */
import type { ResourceName } from '../../api/resources.ts'
import type { Change } from './changes.ts'

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
  return equalButHeartbeats(object.status, previous.status)
}

/** Two values of JSON. */
function equalButHeartbeats(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return false
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every(
    (name) => Object.hasOwn(b, name) && (name === 'lastHeartbeatTime' || equalButHeartbeats(a[name], b[name])),
  )
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null
}
