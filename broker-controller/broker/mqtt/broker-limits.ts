/** The limits that the broker sets its clients. */

export type BrokerLimits = {
  /** A reader that accepts nothing for this time is disconnected. The kernel accepts data in steps, as its buffer empties: 1.4 MB on a loopback. */
  readonly drainTimeoutMs: number
  /** From the beginning of the handshake to an accepted CONNECT. */
  readonly connectTimeoutMs: number
  /** The largest packet a node may send. A NodeStatus with its fifty largest images is about 20 KB. */
  readonly maxPacketBytes: number
  /** The longest keep alive; a node must set one. One and a half heartbeats of a lease of an hour. */
  readonly keepAliveSeconds: number
  /** All connections, including those that wait for their handshake. */
  readonly maxConnections: number
  /** Handshakes in progress at a time. One takes about a millisecond of CPU, so 256 keep the event loop free for others. */
  readonly handshakes: number
  /** The same from one address (IPv6: one /64). */
  readonly handshakesPerAddress: number
  /** Connections before an accepted CONNECT. */
  readonly pendingConnections: number
  /** The same from one address: a site of a thousand nodes may be behind one. */
  readonly pendingPerAddress: number
  /** How long a connection may wait for its handshake. An agent gives up after 15 s. */
  readonly handshakeWaitMs: number
}

export const defaultBrokerLimits: BrokerLimits = {
  drainTimeoutMs: 20_000,
  connectTimeoutMs: 10_000,
  maxPacketBytes: 256 * 1024,
  keepAliveSeconds: 1_350,
  maxConnections: 20_000,
  handshakes: 256,
  handshakesPerAddress: 64,
  pendingConnections: 8192,
  pendingPerAddress: 1024,
  handshakeWaitMs: 12_000,
}
