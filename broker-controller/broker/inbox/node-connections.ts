/**
 * Connections of nodes: from their `connection` messages, and from what the broker observes. A broker that observes nothing never
 * calls `connected` and `disconnected`.
 */
import { type ConnectionMessage, ConnectionMessageSchema } from '../../../api/topics.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { SessionBoard } from '../../sessions/session-board.ts'
import type { NodeMessage, Peer } from '../broker.ts'
import type { NodeOutbox } from '../outbox/node-outbox.ts'
import type { IdentityConflicts } from './identity-conflicts.ts'
import type { MessageBodies } from './message-bodies.ts'
import type { NodeDigests } from './node-digests.ts'
import type { NodeLeases } from './node-leases.ts'

export type NodeConnectionsNeeds = {
  readonly bodies: Pick<MessageBodies, 'decoded'>
  readonly leases: Pick<NodeLeases, 'record'>
  readonly digests: Pick<NodeDigests, 'reset'>
  readonly conflicts: Pick<IdentityConflicts, 'connected' | 'booted'>
  readonly sessions: Pick<SessionBoard, 'connected' | 'disconnected'>
  readonly desired: Pick<NodeOutbox, 'nodeOnline'>
  readonly log: LimitedLog
}

export interface NodeConnections {
  /** The same object as long as the connection lasts. */
  peerOf(node: string): Peer
  /** Has the node published a goodbye on its present connection? */
  isLeaving(node: string): boolean
  /** A heartbeat of the node was received: it is connected. For brokers that observe no connections. */
  renewed(node: string): void
  /** Takes in a `connection` message. Rejects if the store does. */
  receive(message: NodeMessage): Promise<void>
  connected(node: string, peer: Peer): void
  /** Rejects if the store does. */
  disconnected(node: string): Promise<void>
}

export function nodeConnections(needs: NodeConnectionsNeeds): NodeConnections {
  const { bodies, leases, digests, conflicts, sessions, desired, log } = needs
  const peers = new Map<string, Peer>()
  const leaving = new Set<string>()
  const peerOf = (node: string) => peers.get(node) ?? unobserved

  const online = (node: string, { bootID, references = false }: ConnectionMessage, isRetained: boolean) => {
    // On each connection this message is the first; after it the node publishes everything.
    if (!peers.has(node) && !isRetained) {
      digests.reset(node)
      conflicts.connected(node, undefined, false)
    }
    if (!isRetained) conflicts.booted(node, bootID)
    sessions.connected(node)
    desired.nodeOnline(node, references)
  }

  return {
    peerOf,
    isLeaving: (node) => leaving.has(node),
    renewed(node) {
      if (!peers.has(node)) sessions.connected(node)
    },
    async receive(message) {
      const { node, isRetained = false } = message
      const connection = bodies.decoded(ConnectionMessageSchema, message)
      if (connection === undefined) return
      const { state, reason, expectedBackSeconds } = connection
      if (state === 'online') online(node, connection, isRetained)
      // After a goodbye the node is there for a while, and its logs can be read.
      if (state === 'lost') sessions.disconnected(node)
      if (state === 'goodbye') leaving.add(node)
      else leaving.delete(node)
      log.info(`${node}/connection`, 'Node connection', {
        ...{ node, state, reason, expectedBackSeconds },
        ...(isRetained && { isRetained }),
      })
      await leases.record(node, { kind: 'connection', message: connection, isRetained }, peerOf(node))
    },
    connected(node, peer) {
      conflicts.connected(node, peer.address, peers.has(node))
      digests.reset(node)
      peers.set(node, peer)
    },
    disconnected(node) {
      peers.delete(node)
      sessions.disconnected(node)
      leaving.delete(node)
      digests.reset(node)
      return leases.record(node, { kind: 'disconnected' }, unobserved)
    },
  }
}

const unobserved: Peer = {}
