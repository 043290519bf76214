/** What each node has said of itself, as fingerprints: does it match what the node believes it said? */
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'

export interface NodeDigests {
  /** The node disconnected, or connects again: it will publish everything. */
  forget(node: string): void
  /** An empty body withdraws. */
  heard(node: string, topic: string, body: string): void
  /** What was heard could not be used: as if it had been lost. */
  lost(node: string, topic: string): void
  /**
   * True when the node should publish everything again; the count of mismatches then starts over. Without a digest: the one that
   * the node gave last on this connection still holds.
   */
  differs(node: string, digest: string | undefined): boolean
}

type Heard = { readonly prints: Map<string, string>; digest: string; mismatches: number }

/** Many more than a node has pods: one that makes up topics takes no memory by it. */
const mostTopics = 5000
/** Of two leases in a row, the first may have overtaken a status that is still on its way. */
const tolerated = 1

export function nodeDigests(): NodeDigests {
  const nodes = new Map<string, Heard>()
  /** What each node last gave as its digest. */
  const given = new Map<string, string>()
  const of = (node: string) => {
    const found = nodes.get(node) ?? { prints: new Map(), digest: emptyDigest, mismatches: 0 }
    nodes.set(node, found)
    return found
  }
  const fold = (heard: Heard, topic: string, print: string | undefined) => {
    const before = heard.prints.get(topic)
    if (before !== undefined) heard.digest = foldDigest(heard.digest, before)
    if (print !== undefined) heard.digest = foldDigest(heard.digest, print)
    if (print === undefined) heard.prints.delete(topic)
    else heard.prints.set(topic, print)
  }
  return {
    forget(node) {
      nodes.delete(node)
      given.delete(node)
    },
    heard(node, topic, body) {
      const heard = of(node)
      if (heard.prints.size >= mostTopics && !heard.prints.has(topic)) return
      fold(heard, topic, body === '' ? undefined : digestText(topic, body))
    },
    lost(node, topic) {
      const heard = nodes.get(node)
      if (heard !== undefined) fold(heard, topic, undefined)
    },
    differs(node, newest) {
      if (newest !== undefined) given.set(node, newest)
      const digest = given.get(node)
      if (digest === undefined) return false
      const heard = of(node)
      heard.mismatches = heard.digest === digest ? 0 : heard.mismatches + 1
      if (heard.mismatches <= tolerated) return false
      nodes.delete(node)
      return true
    },
  }
}
