/** Decodes the messages of nodes. Messages that are not used are counted, and logged within limits. */

import { decode } from '../../../api/decode.ts'
import { problemText } from '../../../api/problem.ts'
import type { Described, TSchema } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { topicName } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import type { NodeMessage } from '../broker.ts'

export interface MessageBodies {
  /** undefined: the body does not match the schema; the message is dropped. */
  decoded<const S extends TSchema>(schema: S, message: NodeMessage): Described<S> | undefined
  /** Counts a message that is not used, and logs it within limits. */
  drop(message: NodeMessage, reason: string, problems?: readonly string[]): void
  /** Counts a message that is not used, without a log line. */
  count(message: NodeMessage, reason: string): void
  /** Counts and logs a report with lists or texts that were cut to the allowed length. */
  recordCut(message: NodeMessage, cut: readonly string[]): void
  /** Counts and logs a report with addresses that its node cannot have. */
  recordWrongAddresses(message: NodeMessage, wrong: readonly string[]): void
  close(): void
}

export type MessageBodiesNeeds = { readonly clock: Clock; readonly log: Log; readonly registry: MetricsRegistry }

/** Registers its metrics: once for a registry. */
export function messageBodies({ clock, log, registry }: MessageBodiesNeeds): MessageBodies {
  const dropped = registry.counter({
    name: 'bramble_inbox_dropped_total',
    help: 'Messages of nodes that were not used',
    labelNames: ['kind', 'reason'],
  })

  const shortened = registry.counter({
    name: 'bramble_inbox_shortened_total',
    help: 'Reports of nodes with lists or texts that were longer than allowed and were cut',
    labelNames: ['kind'],
  })
  const wrongAddresses = registry.counter({
    name: 'bramble_inbox_wrong_addresses_total',
    help: 'Reports of nodes with addresses that are not theirs, which are not used',
    labelNames: ['kind'],
  })
  const limited = limitLog(log, clock)
  const drops = limitLog(log, clock, { linesPerKey: 1, periodMs: 10 * 60_000 })

  const drop = (message: NodeMessage, reason: string, problems: readonly string[] = []) => {
    const { node, topic } = message
    dropped.inc({ kind: topic.kind, reason })
    const key = `${node}/${topic.kind}/${reason}`
    drops.warn(key, 'Message of a node dropped', { node, topic: topicName(topic), reason, problems })
  }

  const decoded = <const S extends TSchema>(schema: S, message: NodeMessage): Described<S> | undefined => {
    const result = decode(schema, parseJson(message.body))
    if (result.ok) return result.value
    drop(message, 'NotUnderstood', result.problems.slice(0, 10).map(problemText))
    return undefined
  }

  return {
    decoded,
    drop,
    count: ({ topic }, reason) => dropped.inc({ kind: topic.kind, reason }),
    recordCut(message, cut) {
      if (cut.length === 0) return
      const { node, topic } = message
      shortened.inc({ kind: topic.kind })
      limited.warn(`${node}/cut`, 'Report of a node shortened', { node, topic: topicName(topic), fields: cut })
    },
    recordWrongAddresses(message, wrong) {
      const { node, topic } = message
      wrongAddresses.inc({ kind: topic.kind })
      limited.warn(`${node}/addresses`, 'Addresses in the report of a node are not used: they are not its own', {
        node,
        topic: topicName(topic),
        wrong,
      })
    },
    close() {
      limited.close()
      drops.close()
    },
  }
}
