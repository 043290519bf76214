/**
 * When a name that was revoked gets rights again. Mosquitto does not look at the certificates of open connections, so that of the earlier
 * machine stays open and would have the rights of the next one: a list without the name and with the revocation comes first, then the
 * connection is ended, and then the name has rights.
 */
import { nodeIdentity } from '../../../api/identity.ts'
import type { Revocation } from '../../store/revocations.ts'

/** For Mosquitto to read a list: until then it would let the earlier machine connect again. */
export const settleMs = 5_000

export type ReturningNodes = {
  /** Nodes whose earlier connections are to be ended now. */
  readonly displace: readonly string[]
  /** Nodes that have no rights yet. */
  readonly waiting: ReadonlySet<string>
  /** Until the first of these may be displaced; undefined: none waits. */
  readonly waitMs: number | undefined
}

export type ReturningFacts = {
  /** Users that have rights in the last list. */
  readonly before: ReadonlySet<string>
  /** Nodes that may have rights in the next one. */
  readonly allowed: readonly string[]
  readonly revocations: ReadonlyMap<string, Revocation>
  readonly nowMs: number
}

type Removal = {
  readonly beforeMs: number
  /** Since when the list is without the user. */
  readonly sinceMs: number
}

type Removals = ReadonlyMap<string, Removal>

/** Called before each list is written. A list of an earlier run of the program has been read by now. */
export function returningNodes(): (facts: ReturningFacts) => ReturningNodes {
  /** By user: its last revocation. */
  let known: Removals = new Map()
  let isFirst = true
  return (facts) => {
    const { added, isNew } = newRemovals(known, facts, isFirst)
    known = new Map([...known, ...added])
    isFirst = false
    return returning(known, isNew, facts)
  }
}

/** Revocations that are not known yet. `isNew`: users that lose their rights by the next list. */
function newRemovals(known: Removals, { before, allowed, revocations, nowMs }: ReturningFacts, isFirst: boolean) {
  const users = new Set(allowed.map((node) => nodeIdentity(node).user))
  const added = new Map<string, Removal>()
  const isNew = new Set<string>()
  for (const { user, beforeMs } of revocations.values()) {
    if (known.get(user)?.beforeMs === beforeMs) continue
    const wasRemovedEarlier = !before.has(user) || (isFirst && users.has(user))
    if (!wasRemovedEarlier) isNew.add(user)
    added.set(user, { beforeMs, sinceMs: wasRemovedEarlier ? Number.NEGATIVE_INFINITY : nowMs })
  }
  return { added, isNew }
}

function returning(
  known: Removals,
  isNew: ReadonlySet<string>,
  { before, allowed, revocations, nowMs }: ReturningFacts,
): ReturningNodes {
  const displace: string[] = []
  const waiting = new Map<string, number>()
  for (const node of allowed) {
    const { user } = nodeIdentity(node)
    const removed = revocations.has(user) ? known.get(user) : undefined
    if (removed === undefined || (before.has(user) && !isNew.has(user))) continue
    const waitMs = removed.sinceMs + settleMs - nowMs
    if (waitMs > 0) waiting.set(node, waitMs)
    else displace.push(node)
  }
  return {
    displace,
    waiting: new Set(waiting.keys()),
    waitMs: waiting.size === 0 ? undefined : Math.min(...waiting.values()),
  }
}
