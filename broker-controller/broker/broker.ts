/**
 * What the control plane needs of an MQTT broker. The embedded one is `mqtt-broker.ts`; an external one (Mosquitto, NATS,
 * EMQX) is another file behind the same words.
 */
import type { NodeTopic, Topic } from '../../api/topics.ts'

/** A message of a node whose right to say it has been checked. */
export type NodeMessage = {
  readonly node: string
  readonly topic: NodeTopic
  /** Empty: what was retained there is withdrawn. */
  readonly body: string
}

/** Who is at the other end of a connection. */
export type Peer = {
  readonly address?: string | undefined
  /** The certificate it showed: its end (RFC 3339), and the hash of the authority that signed it where that is known. */
  readonly certificate?: { readonly until: string; readonly authority?: string | undefined }
}

export interface NodeListener {
  /**
   * The broker takes more from this node once it resolves; undefined: it was taken at once. Never rejects. Of a connection that another one of the same
   * node has replaced nothing is told any more: neither messages, nor its last will, nor its end.
   */
  message(message: NodeMessage): Promise<void> | undefined
  connected(node: string, peer: Peer): void
  disconnected(node: string): void
}

export interface Broker {
  /**
   * Resolves when the broker has taken the message, whoever reads it later. QoS and retention are the topic's;
   * `retain: false`: only a connection that exists now receives it, and an earlier retained message stays.
   */
  publish(topic: Topic, body: string, options?: { readonly retain?: boolean }): Promise<void>
  /** Deletes what is retained on the topic. Connected readers receive nothing. */
  withdraw(topic: Topic): Promise<void>
  /** Lets what was published last get out, and ends all connections. */
  close(): Promise<void>
}
