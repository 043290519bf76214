/**
 * What the control plane needs of an MQTT broker: `publish` and the messages of nodes. The embedded broker is `mqtt/mqtt-broker.ts`,
 * `mqtt-client/external-broker.ts` is a client of an external server such as Mosquitto. `testing/broker-contract.ts` is the suite that
 * both pass. An external server must offer:
 * - Rights. A node publishes and reads only its own topics, by its certificate: a client id or a topic alone proves nothing.
 *   `mqtt/authorization.ts` has the rules for publish, subscribe and last will.
 * - One connection for each client id, which is the node's name: a second one replaces the first.
 * - Retained messages (`docs/mqtt.md` lists them) and last wills. The controller publishes its own again after each connection.
 * - Order: the messages of one connection arrive in the order in which they were published.
 * Whether a node is connected is in its `connection` messages. Only a broker that observes connections calls `connected` and
 * `disconnected`. Without them a lost connection is detected by the last will and the lease, and the annotations of the lease have no
 * certificate dates and addresses.
 */
import type { NodeTopic, Topic } from '../../api/topics.ts'

/** A message of a node that was allowed to publish it. */
export type NodeMessage = {
  readonly node: string
  readonly topic: NodeTopic
  /** Empty: the message that was retained on the topic is withdrawn. */
  readonly body: string
  /** For `connection` only: published before the broker connected, at an unknown time; not a sign of life. */
  readonly isRetained?: boolean
}

/** The other end of a connection, as far as the broker observes it. */
export type Peer = {
  readonly address?: string | undefined
  /** The certificate of the connection: its end (RFC 3339), and the hash of the authority that signed it, if identified. */
  readonly certificate?: { readonly until: string; readonly authority?: string | undefined }
}

export interface NodeListener {
  /**
   * Called for messages that nodes publish while the broker listens, and of those that were retained before for `connection`. A broker
   * that can slow down one node reads more from it when the promise has resolved; undefined: the message was handled at once. Never rejects. Nothing
   * of a replaced connection follows the first message of the next one: no messages, no last will, no `disconnected`.
   */
  message(message: NodeMessage): Promise<void> | undefined
  connected(node: string, peer: Peer): void
  disconnected(node: string): void
}

export interface Broker {
  /**
   * The broker identifies the sender of a message by its certificate, whatever the topic. Only then nodes may publish leases on
   * `shortLeaseTopic`, which does not name the node.
   */
  readonly identifiesSenders: boolean
  /**
   * Resolves when the broker has accepted the message, before any client has read it. QoS and retention are the topic's;
   * `retain: false`: only a connection that exists now receives it, and an earlier retained message stays. `again` makes the same
   * body once more: a broker may keep it in place of the body, which is larger than what it is made of. `retained` makes what is retained
   * in place of the body, which only a connection that exists now receives; that connection may receive both, in this order.
   */
  publish(
    topic: Topic,
    body: string,
    options?: {
      readonly retain?: boolean
      readonly again?: (() => string) | undefined
      readonly retained?: (() => string) | undefined
    },
  ): Promise<void>
  /** Deletes what is retained on the topic. Connected readers receive nothing, or an empty body, which agents ignore. */
  withdraw(topic: Topic): Promise<void>
  /** Sends what was published last, and closes its connections. The listener is not called any more. */
  close(): Promise<void>
}
