/** Packets of an external MQTT server → messages of nodes, within limits. */
import { dnsSubdomainProblem } from '../../../api/names.ts'
import { isFleetTopic, type NodeTopic, parseTopic, topicRules } from '../../../api/topics.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { Counter } from '../../../daemon/metrics-registry.ts'
import type { NodeListener } from '../broker.ts'
import type { NodeShare } from './node-share.ts'
import type { UngreetedNodes } from './ungreeted-nodes.ts'

/** As the embedded broker: `maxPacketBytes` of its limits. */
const longestOfNode = 256 * 1024
/** A node chooses the topics of its pods. */
const mostFoundOfNode = 1_000

export type InboundNeeds = {
  readonly share: NodeShare
  readonly metrics: { readonly messages: Counter<'kind'>; readonly refusals: Counter<'reason'> }
  readonly log: LimitedLog
  readonly ungreeted: UngreetedNodes
}

export interface InboundMessages {
  /** undefined: messages are dropped. */
  listen(listener: NodeListener | undefined): void
  /** Another connection begins. */
  reset(): void
  received(name: string, payload: string | Buffer, isRetained: boolean): void
  /** Topics of nodes that had a retained message when the connection began: at most 1,000 of a node. */
  foundRetained(): readonly NodeTopic[]
}

/** The server grants a node its own topics only, so the topic names the sender. */
export function inboundMessages({ share, metrics, log, ungreeted }: InboundNeeds): InboundMessages {
  const found = new Map<string, Map<string, NodeTopic>>()
  let listener: NodeListener | undefined

  const find = (name: string, topic: NodeTopic) => {
    const ofNode = found.get(topic.node) ?? new Map<string, NodeTopic>()
    if (ofNode.size < mostFoundOfNode) found.set(topic.node, ofNode.set(name, topic))
  }

  const receive = (topic: NodeTopic, payload: string | Buffer, isRetained: boolean) => {
    const { node } = topic
    metrics.messages.inc({ kind: topic.kind })
    const bytes = Buffer.byteLength(payload)
    const refusal = bytes > longestOfNode ? 'TooLarge' : share.take(node, bytes) ? undefined : 'TooMany'
    if (refusal !== undefined) {
      metrics.refusals.inc({ reason: refusal })
      return log.warn(`${node}/${refusal}`, 'Message of a node dropped', { node, kind: topic.kind, refusal, bytes })
    }
    const handled = listener?.message({ node, topic, body: payload.toString(), ...(isRetained && { isRetained }) })
    if (handled === undefined) share.release(node, bytes)
    else void handled.then(() => share.release(node, bytes))
  }

  return {
    listen(to) {
      listener = to
    },
    reset() {
      found.clear()
      ungreeted.reset()
    },
    foundRetained: () => [...found.values()].flatMap((topics) => [...topics.values()]),
    received(name, payload, isRetained) {
      const topic = topicOfNode(name)
      if (topic === undefined) return
      if (isRetained) find(name, topic)
      // An empty message on these topics withdraws what was retained: agents do so for pods only.
      if (payload.length === 0 && topic.kind !== 'pod') return
      // A retained message was published at an unknown time, or again by a server that was restarted. It is not a heartbeat: only
      // what the last connection of the node was is taken from it. Statuses are published again where the digest differs.
      if (isRetained && topic.kind !== 'connection') return
      if (topic.kind === 'connection') ungreeted.connected(topic.node)
      if (topic.kind === 'lease') ungreeted.renewed(topic.node)
      receive(topic, payload, isRetained)
    },
  }
}

/** undefined: nodes do not publish on it. */
function topicOfNode(name: string) {
  const topic = parseTopic(name)
  if (topic === undefined || isFleetTopic(topic) || topicRules[topic.kind].from !== 'node') return undefined
  return dnsSubdomainProblem(topic.node) === undefined ? topic : undefined
}
