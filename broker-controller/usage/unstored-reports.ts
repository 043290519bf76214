/** Nodes that reported their status lately without it being stored: what the store has of them is outdated. */
import type { Clock } from '../../daemon/clock.ts'

export interface UnstoredReports {
  /** A status of this node could not be stored. */
  failed(node: string): void
  /** The store took no write: it lacks still what it lacked. */
  storeFailed(): void
  /** It may not be stored yet. */
  mayBeOutdated(node: string): boolean
}

/**
 * Once the store can be written again, the node publishes its status at its second heartbeat, 20 s later at most, and its taints follow
 * within seconds. Packets may be slow.
 */
const lastsMs = 60_000

export function unstoredReports({ clock }: { readonly clock: Pick<Clock, 'monotonicMs'> }): UnstoredReports {
  /** When the last status of each node failed. */
  const failures = new Map<string, number>()
  let storeFailedMs = Number.NEGATIVE_INFINITY
  const isOver = (atMs: number) => clock.monotonicMs() - Math.max(atMs, storeFailedMs) >= lastsMs
  const dropOver = () => {
    for (const [name, atMs] of failures) if (isOver(atMs)) failures.delete(name)
  }
  return {
    failed: (node) => void failures.set(node, clock.monotonicMs()),
    storeFailed() {
      // Before that none is over.
      if (isOver(storeFailedMs)) dropOver()
      storeFailedMs = clock.monotonicMs()
    },
    mayBeOutdated(node) {
      const atMs = failures.get(node)
      return atMs !== undefined && !isOver(atMs)
    },
  }
}
