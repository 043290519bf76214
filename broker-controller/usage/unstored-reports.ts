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
  /** Since the store took writes for so long. */
  const nodes = new Set<string>()
  let failedMs = Number.NEGATIVE_INFINITY
  const isOver = () => clock.monotonicMs() - failedMs >= lastsMs
  const storeFailed = () => {
    if (isOver()) nodes.clear()
    failedMs = clock.monotonicMs()
  }
  return {
    failed(node) {
      storeFailed()
      nodes.add(node)
    },
    storeFailed,
    mayBeOutdated: (node) => nodes.has(node) && !isOver(),
  }
}
