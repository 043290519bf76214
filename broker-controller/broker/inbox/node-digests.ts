/** Fingerprints of what each node published, compared with the digest that the node computed. */
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'

export interface NodeDigests {
  /** The node has disconnected or connected: it will publish everything. */
  reset(node: string): void
  /** A message was received. An empty body withdraws the one before. */
  received(node: string, topic: string, body: string): void
  /** A received message could not be stored; it counts as lost. */
  lost(node: string, topic: string): void
  /**
   * True: the node should publish everything again; the count of mismatches then starts over. `digest` undefined: the last one on
   * this connection is unchanged.
   */
  differs(node: string, digest: string | undefined): boolean
}

type Received = { readonly prints: Map<string, string>; digest: string; mismatches: number }

/** Many more than a node has pods. Bounds the memory that a node can use by inventing topics. */
const mostTopics = 5000
/** A lease can arrive before a status that was published earlier, so one mismatch is tolerated. */
const tolerated = 1

export function nodeDigests(): NodeDigests {
  const nodes = new Map<string, Received>()
  /** The last digest that each node sent. */
  const sent = new Map<string, string>()
  const of = (node: string) => {
    const found = nodes.get(node) ?? { prints: new Map(), digest: emptyDigest, mismatches: 0 }
    nodes.set(node, found)
    return found
  }
  const fold = (received: Received, topic: string, print: string | undefined) => {
    const before = received.prints.get(topic)
    if (before !== undefined) received.digest = foldDigest(received.digest, before)
    if (print !== undefined) received.digest = foldDigest(received.digest, print)
    if (print === undefined) received.prints.delete(topic)
    else received.prints.set(topic, print)
  }
  return {
    reset(node) {
      nodes.delete(node)
      sent.delete(node)
    },
    received(node, topic, body) {
      const received = of(node)
      if (received.prints.size >= mostTopics && !received.prints.has(topic)) return
      fold(received, topic, body === '' ? undefined : digestText(topic, body))
    },
    lost(node, topic) {
      const received = nodes.get(node)
      if (received !== undefined) fold(received, topic, undefined)
    },
    differs(node, newest) {
      if (newest !== undefined) sent.set(node, newest)
      const digest = sent.get(node)
      if (digest === undefined) return false
      const received = of(node)
      received.mismatches = received.digest === digest ? 0 : received.mismatches + 1
      if (received.mismatches <= tolerated) return false
      nodes.delete(node)
      return true
    },
  }
}
