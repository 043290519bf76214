/** Messages of nodes → the store. */

import { type AddressRules, bridgeRules } from '../../../api/node/reported-addresses.ts'
import { StorageMessageSchema } from '../../../api/storage/volume-messages.ts'
import { ContentsMessageSchema, mostHeldNames, topicName } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import type { Loop } from '../../../daemon/run.ts'
import { beginOperation } from '../../../daemon/watchdog/event-loop.ts'
import type { SessionBoard } from '../../sessions/session-board.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { informer } from '../../store/informer.ts'
import { isStoreFailure, type Store, type StoredObject } from '../../store/store.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'
import type { UnstoredReports } from '../../usage/unstored-reports.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { Broker, NodeListener, NodeMessage } from '../broker.ts'
import type { NodeOutbox } from '../outbox/node-outbox.ts'
import { type Heartbeats, heartbeats } from './heartbeats.ts'
import { identityConflicts } from './identity-conflicts.ts'
import { latestOnly } from './latest-only.ts'
import { type MessageBodies, messageBodies } from './message-bodies.ts'
import { type NodeConnections, nodeConnections } from './node-connections.ts'
import { type NodeDigests, nodeDigests } from './node-digests.ts'
import { nodeLeases } from './node-leases.ts'
import { type NodeReports, nodeReports } from './node-reports.ts'
import { reportRequests } from './report-requests.ts'
import { reportedAddresses } from './reported-addresses.ts'

export type NodeInboxNeeds = {
  readonly store: Store
  readonly usage: Pick<UsageBoard, 'receive'>
  readonly storage: Pick<StorageBoard, 'receive' | 'forget'>
  /** undefined: nothing asks for them. */
  readonly unstored?: Pick<UnstoredReports, 'failed' | 'storeFailed'>
  readonly sessions: Pick<SessionBoard, 'connected' | 'disconnected'>
  readonly broker: Pick<Broker, 'publish'>
  readonly events: EventRecorder
  /** undefined: those of a fleet whose nodes reach no pods of each other. */
  readonly addressRules?: AddressRules
  readonly podsOf: (node: string) => readonly StoredObject<'pods'>[]
  readonly desired: Pick<NodeOutbox, 'nodeOnline' | 'nodeHolds'>
  readonly clock: Clock
  readonly log: Log
  readonly registry: MetricsRegistry
}

export interface NodeInbox extends NodeListener, Loop {
  /** The store no longer has what the node published of this pod: it is asked for its whole state when its heartbeats come. */
  podOverwritten(node: string, podUID: string): void
}

/** Registers its metrics: once for a registry. Its loop follows the Nodes, and ends the logs when it stops. */
export function nodeInbox(needs: NodeInboxNeeds): NodeInbox {
  const { store, broker, sessions, desired, storage, events, clock, log } = needs
  /** For lines that a node can cause. */
  const limited = limitLog(log, clock)
  /** A whole fleet may connect at one time: a hundred lines a minute and a count, and they hide no warnings. */
  const connectionLog = limitLog(log, clock)
  const conflicts = identityConflicts({ events, clock, log })
  const digests = nodeDigests()
  const leases = nodeLeases({ store, clock })
  const bodies = messageBodies(needs)
  const addresses = reportedAddresses({ rules: needs.addressRules ?? bridgeRules, bodies, digests, events })
  const requests = reportRequests(broker, connectionLog)
  const connections = nodeConnections({ bodies, leases, digests, conflicts, sessions, desired, log: connectionLog })

  const failed = (message: Pick<NodeMessage, 'node' | 'topic'>, error: unknown) => {
    const topic = topicName(message.topic)
    limited.warn(`${message.node}/not stored`, 'Message of a node not stored', { node: message.node, topic, error })
    if (message.topic.kind === 'status') needs.unstored?.failed(message.node)
    if (isStoreFailure(error)) needs.unstored?.storeFailed()
    // The next lease shows the difference, and the node publishes the message again.
    digests.lost(message.node, topic)
  }
  const leaseFailed = (node: string) => (error: unknown) => failed({ node, topic: { kind: 'connection', node } }, error)

  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    const { name } = (present ?? previous)?.metadata ?? {}
    if (name === undefined) return
    addresses.nodeChanged(present, previous)
    if (present !== undefined) {
      leases.nodeChanged(present, previous === undefined).catch(leaseFailed(name))
      requests.registered(name).catch((error: unknown) => {
        limited.warn(`${name}/not asked`, 'Cannot request the full state of a node', { node: name, error })
      })
    } else if (previous !== undefined) {
      conflicts.forget(name)
      storage.forget(name)
      leases.nodeDeleted(previous).catch(leaseFailed(name))
    }
  })
  const beats = heartbeats({
    ...{ store, clock, bodies, leases, digests, requests, failed },
    ...{ peerOf: connections.peerOf, isLeaving: connections.isLeaving },
    nodeOf: (name) => nodes.get({ namespace: '', name }),
  })
  const receive = messageHandlers({
    ...{ connections, beats, bodies, digests, desired, storage },
    reports: nodeReports({ ...needs, bodies, digests, addresses, unregistered: requests.sendOnceRegistered }),
  })

  return {
    name: 'node-inbox',
    async run(signal) {
      try {
        await nodes.run(signal)
      } finally {
        for (const { close } of [limited, connectionLog, bodies]) close()
      }
    },
    message(message) {
      const isLease = message.topic.kind === 'lease'
      if (isLease) connections.renewed(message.node)
      try {
        const handled = isLease ? beats.receive(message) : receive(message)
        return handled?.catch((error: unknown) => failed(message, error))
      } catch (error) {
        // Thrown on, it would end the controller: nothing else stands between a node's message and the process.
        failed(message, error)
        return undefined
      }
    },
    podOverwritten: (node, uid) => digests.lost(node, topicName({ kind: 'pod', node, uid })),
    connected: connections.connected,
    disconnected(node) {
      beats.forget(node)
      requests.forget(node)
      connections.disconnected(node).catch(leaseFailed(node))
    },
  }
}

type Handlers = {
  readonly connections: NodeConnections
  readonly beats: Heartbeats
  readonly reports: NodeReports
  readonly bodies: Pick<MessageBodies, 'decoded' | 'drop' | 'recordCut'>
  readonly desired: Pick<NodeOutbox, 'nodeHolds'>
  readonly storage: Pick<StorageBoard, 'receive'>
  readonly digests: Pick<NodeDigests, 'received'>
}

/** Handles each message by its topic. Of the statuses of one object only the latest waits while another one is being stored. */
function messageHandlers({ connections, beats, reports, bodies, digests, desired, storage }: Handlers) {
  const queue = latestOnly()
  return async (message: NodeMessage): Promise<void> => {
    const { node, topic } = message
    const name = topicName(topic)
    beginOperation('message', topic.kind)
    if (topic.kind === 'status' || topic.kind === 'pod') digests.received(node, name, message.body)
    switch (topic.kind) {
      case 'connection':
        return connections.receive(message)
      case 'status':
        return queue.run(name, () => reports.status(message))
      case 'pod':
        return queue.run(name, () => reports.pod(message, topic.uid))
      case 'events':
        return reports.event(message)
      case 'stats':
        return reports.stats(message)
      case 'lease':
        return beats.receive(message)
      case 'contents': {
        const names = bodies.decoded(ContentsMessageSchema, message)?.names
        if (names !== undefined) desired.nodeHolds(node, names.slice(0, mostHeldNames))
        return
      }
      case 'storage': {
        const report = bodies.decoded(StorageMessageSchema, message)
        if (report !== undefined) bodies.recordCut(message, storage.receive(node, report))
        return
      }
      case 'desired':
      case 'calls':
      case 'policies':
      case 'volumes':
        return bodies.drop(message, 'NotANodeTopic')
    }
  }
}
