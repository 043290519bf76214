/** Limits what a node publishes. A message over its rate waits, and so do all its later messages. */

import type { Clock } from '../../../daemon/clock.ts'
import { type Rate, tokenBuckets } from '../../../daemon/limits/token-bucket.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { gauge, one } from '../../../daemon/prometheus-text.ts'
import type { NodeListener, NodeMessage } from '../broker.ts'

export type MessageLimits = {
  readonly messages: Rate
  /** Bytes of message bodies. */
  readonly bytes: Rate
  /** Leases and connection messages, which do not wait behind other messages. */
  readonly signsOfLife: Rate
}

/**
 * A node with 110 pods publishes about 120 messages of together half a megabyte when it connects, and 600 events when all
 * its pods start. When idle it publishes a lease every 10 s, and with usage sampled one more message.
 */
export const defaultMessageLimits: MessageLimits = {
  messages: { perSecond: 50, burst: 2_000 },
  bytes: { perSecond: 256 * 1024, burst: 8 * 1024 * 1024 },
  signsOfLife: { perSecond: 2, burst: 50 },
}

export type MessageLimitNeeds = { readonly clock: Clock; readonly registry: MetricsRegistry }

/**
 * Passes messages to `listener` within these limits. The broker stops reading from a node until `message` has resolved, so a node
 * that publishes too fast is slowed down and loses nothing. Messages that wait when its connection ends are dropped, as they would
 * have been on the wire. Registers its metrics: once for a registry.
 */
export function limitMessages(
  listener: NodeListener,
  { clock, registry }: MessageLimitNeeds,
  limits: MessageLimits = defaultMessageLimits,
): NodeListener {
  const messages = tokenBuckets(limits.messages, clock)
  const bytes = tokenBuckets(limits.bytes, clock)
  const signsOfLife = tokenBuckets(limits.signsOfLife, clock)
  /** By node: the last message that waits, and what ends the wait. */
  const waiting = new Map<string, { readonly last: Promise<void>; readonly gone: AbortController; count: number }>()

  const delayed = registry.counter({
    name: 'bramble_broker_delayed_messages_total',
    help: 'Messages of nodes that waited because the node published faster than allowed',
  })
  registry.add(() => [
    gauge(
      'bramble_broker_delayed_nodes',
      'Nodes whose messages wait now because they published faster than allowed',
      one(waiting.size),
    ),
  ])

  const waitFor = (message: NodeMessage, waitMs: number): Promise<void> => {
    delayed.inc()
    const { node } = message
    const earlier = waiting.get(node)
    const gone = earlier?.gone ?? new AbortController()
    const untilMs = clock.monotonicMs() + waitMs
    const last = (earlier?.last ?? Promise.resolve()).then(async () => {
      if (!gone.signal.aborted) await clock.sleep(untilMs - clock.monotonicMs(), gone.signal)
      const entry = waiting.get(node)
      if (entry?.gone === gone && --entry.count === 0) waiting.delete(node)
      if (!gone.signal.aborted) await listener.message(message)
    })
    waiting.set(node, { last, gone, count: (earlier?.count ?? 0) + 1 })
    return last
  }

  const forget = (node: string) => {
    waiting.get(node)?.gone.abort()
    waiting.delete(node)
  }

  return {
    message(message) {
      const { node, topic, body } = message
      const isSignOfLife = topic.kind === 'lease' || topic.kind === 'connection'
      if (isSignOfLife && signsOfLife.take(node) === 0) return listener.message(message)
      const waitMs = Math.max(messages.reserve(node, 1), bytes.reserve(node, Buffer.byteLength(body)))
      return waitMs > 0 || waiting.has(node) ? waitFor(message, waitMs) : listener.message(message)
    },
    connected(node, peer) {
      forget(node)
      listener.connected(node, peer)
    },
    disconnected(node) {
      forget(node)
      listener.disconnected(node)
    },
  }
}
