/**
 * Nodes that connected before the server had read their rights: it acknowledges and drops what they publish, and sends them nothing
 * that was retained. Their first heartbeat that arrives shows that they have their rights now.
 */
import type { Clock } from '../../../daemon/clock.ts'
import { expiringMap } from '../../../daemon/limits/expiring-map.ts'

export interface UngreetedNodes {
  /** The `connection` message of the node was received: it had its rights when it connected. */
  connected(node: string): void
  renewed(node: string): void
  /** The Node was deleted: what has its name next is greeted, too. */
  deleted(node: string): void
  /** The Node exists, perhaps again. */
  created(node: string): void
  /** The controller has another connection. */
  reset(): void
}

/** Nodes that join together are greeted together: each greeting has one message that all nodes receive. */
const gatherMs = 1_000
/** The server has read by then that the machine of the deleted Node has no rights: until then its heartbeats arrive. */
const lingerMs = 60_000

/** `greet` is called with nodes that may have missed what is retained. */
export function ungreetedNodes(
  clock: Pick<Clock, 'sleep' | 'monotonicMs'>,
  greet: (nodes: readonly string[]) => void,
): UngreetedNodes {
  const greeted = new Set<string>()
  const lingering = expiringMap<true>(clock, lingerMs)
  let due: string[] = []
  return {
    connected: (node) => void greeted.add(node),
    renewed(node) {
      if (greeted.has(node)) return
      greeted.add(node)
      due.push(node)
      if (due.length > 1) return
      void clock.sleep(gatherMs).then(() => {
        const nodes = due
        due = []
        greet(nodes)
      })
    },
    deleted(node) {
      greeted.delete(node)
      lingering.set(node, true)
    },
    created(node) {
      if (lingering.get(node) === undefined) return
      lingering.delete(node)
      greeted.delete(node)
    },
    reset: () => greeted.clear(),
  }
}
