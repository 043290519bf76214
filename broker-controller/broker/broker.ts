/**
 * What the control plane needs of an MQTT broker: `publish` and the messages of nodes. The embedded broker is `mqtt-broker.ts`.
 * Another one (Mosquitto, NATS, EMQX) is one new file, an MQTT client that returns a `Broker` and calls a `NodeListener`. It must offer:
 * - Rights. A message reaches the listener only if its topic belongs to the node whose certificate the client showed: a client id or a
 *   topic alone proves nothing. `authorization.ts` has the rules for publish, subscribe and last will.
 * - One connection for each node: a second one replaces the first, and of the first no message and no last will follows.
 * - Retained messages (`docs/mqtt.md` lists them) that outlive a restart of the broker, and last wills.
 * - Order: the messages of one connection arrive in the order in which they were published.
 * Whether a node is connected is in its `connection` messages. `connected`, `disconnected` and the facts of a `Peer` are what only the
 * embedded broker sees; without them a lost connection is known from the last will and from the node's lease, and certificate dates and
 * addresses are absent from the annotations of the node's lease.
 */
import type { NodeTopic, Topic } from '../../api/topics.ts'

/** A message of a node that was allowed to publish it. */
export type NodeMessage = {
  readonly node: string
  readonly topic: NodeTopic
  /** Empty: the message that was retained on the topic is withdrawn. */
  readonly body: string
}

/** The other end of a connection, as far as the broker sees it. */
export type Peer = {
  readonly address?: string | undefined
  /** The certificate of the connection: its end (RFC 3339), and the hash of the authority that signed it, if identified. */
  readonly certificate?: { readonly until: string; readonly authority?: string | undefined }
}

export interface NodeListener {
  /**
   * The broker reads more from this node when it resolves; undefined: the message was handled at once. Never rejects. Of a connection
   * that another one of the same node has replaced nothing follows: no messages, no last will, no `disconnected`.
   */
  message(message: NodeMessage): Promise<void> | undefined
  connected(node: string, peer: Peer): void
  disconnected(node: string): void
}

export interface Broker {
  /**
   * Resolves when the broker has accepted the message, before any client has read it. QoS and retention are the topic's;
   * `retain: false`: only a connection that exists now receives it, and an earlier retained message stays.
   */
  publish(topic: Topic, body: string, options?: { readonly retain?: boolean }): Promise<void>
  /** Deletes what is retained on the topic. Connected readers receive nothing. */
  withdraw(topic: Topic): Promise<void>
  /** Sends what was published last, and closes all connections. */
  close(): Promise<void>
}
