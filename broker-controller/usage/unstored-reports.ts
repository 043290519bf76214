/** Nodes that reported their status lately without it being stored: what the store has of them is outdated. */
import type { Clock } from '../../daemon/clock.ts'

export interface UnstoredReports {
  /** A status of this node could not be stored. */
  failed(node: string): void
  /** It may not be stored yet. */
  mayBeOutdated(node: string): boolean
}

/**
 * Once the store can be written again, the node publishes its status at its second heartbeat, 20 s later at most, and its taints follow
 * within seconds. Packets may be slow.
 */
const lastsMs = 60_000

export function unstoredReports({ clock }: { readonly clock: Pick<Clock, 'monotonicMs'> }): UnstoredReports {
  const failures = new Map<string, number>()
  return {
    failed(node) {
      const nowMs = clock.monotonicMs()
      for (const [name, atMs] of failures) if (nowMs - atMs >= lastsMs) failures.delete(name)
      failures.set(node, nowMs)
    },
    mayBeOutdated(node) {
      const atMs = failures.get(node)
      return atMs !== undefined && clock.monotonicMs() - atMs < lastsMs
    },
  }
}
