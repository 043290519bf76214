/** What messages of one node may wait in memory: the server goes on sending, so a node that publishes too fast is not slowed down. */

export type NodeShareLimits = { readonly messages: number; readonly bytes: number }

/** More than an honest node publishes in the burst that is passed on at once. */
const usualLimits: NodeShareLimits = { messages: 1_000, bytes: 8 * 1024 * 1024 }

export interface NodeShare {
  /** False: too much of this node waits, and the message is to be dropped. */
  take(node: string, bytes: number): boolean
  /** A message that was taken has been handled. */
  release(node: string, bytes: number): void
}

export function nodeShare(limits: NodeShareLimits = usualLimits): NodeShare {
  const waiting = new Map<string, { messages: number; bytes: number }>()
  return {
    take(node, bytes) {
      const present = waiting.get(node) ?? { messages: 0, bytes: 0 }
      if (present.messages >= limits.messages || present.bytes + bytes > limits.bytes) return false
      present.messages += 1
      present.bytes += bytes
      waiting.set(node, present)
      return true
    },
    release(node, bytes) {
      const present = waiting.get(node)
      if (present === undefined) return
      present.messages -= 1
      present.bytes -= bytes
      if (present.messages <= 0) waiting.delete(node)
    },
  }
}
