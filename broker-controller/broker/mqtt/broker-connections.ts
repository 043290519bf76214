/** Connections whose handshake is done, and the one that each node has now. */
import type { LastWill } from './connect-decision.ts'
import type { MqttSession } from './mqtt-session.ts'
import type { PeerCertificate } from './peer-certificate.ts'

export type BrokerConnection = {
  readonly session: MqttSession
  readonly peer: PeerCertificate
  /** The last will of an accepted CONNECT. */
  will: LastWill | undefined
  /** Called when CONNECT was accepted. */
  readonly accepted: () => void
}

export interface BrokerConnections {
  add(connection: BrokerConnection): void
  /** True: the node had no newer connection, and has none now. */
  delete(connection: BrokerConnection): boolean
  /** Makes it the connection of this node. Returns the one before. */
  replace(node: string, connection: BrokerConnection): BrokerConnection | undefined
  /** The connection that this node has now. */
  of(node: string): BrokerConnection | undefined
  /** One for each connected node. */
  ofNodes(): readonly BrokerConnection[]
  /** With those before an accepted CONNECT. */
  all(): readonly BrokerConnection[]
  readonly connectedNodes: number
}

export function brokerConnections(): BrokerConnections {
  const connections = new Set<BrokerConnection>()
  const current = new Map<string, BrokerConnection>()
  return {
    add: (connection) => void connections.add(connection),
    delete(connection) {
      const { node } = connection.peer
      connections.delete(connection)
      return node !== undefined && current.get(node) === connection && current.delete(node)
    },
    replace(node, connection) {
      const previous = current.get(node)
      current.set(node, connection)
      return previous
    },
    of: (node) => current.get(node),
    ofNodes: () => [...current.values()],
    all: () => [...connections],
    get connectedNodes() {
      return current.size
    },
  }
}
