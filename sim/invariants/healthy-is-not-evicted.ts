/** No healthy node is evicted from. */
import { type Invariant, withEntry } from './invariant.ts'

/** Since when each node is healthy; undefined: it is not. */
type Health = ReadonlyMap<string, number | undefined>

/** A node that is back may need this long until the controller has its first heartbeat and status. */
const backMs = 90_000

export const healthyIsNotEvicted: Invariant<Health> = {
  name: 'no healthy node is evicted from',
  initial: new Map(),
  meets: ({ kind }) => kind === 'evicted',
  next(health, fact) {
    if (fact.kind === 'health') {
      const sinceMs = fact.isHealthy ? (health.get(fact.node) ?? fact.atMs) : undefined
      return { state: withEntry(health, fact.node, sinceMs) }
    }
    if (fact.kind !== 'evicted') return { state: health }
    const sinceMs = health.get(fact.node)
    if (sinceMs === undefined || fact.atMs - sinceMs < backMs) return { state: health }
    const seconds = Math.round((fact.atMs - sinceMs) / 1000)
    return { state: health, violation: `${fact.pod} leaves ${fact.node}, which has been healthy for ${seconds} s` }
  },
}
