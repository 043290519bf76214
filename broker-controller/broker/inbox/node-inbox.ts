/** Messages of nodes → the store. */
import type { Registry } from 'prom-client'
import {
  type CallMessage,
  ConnectionMessageSchema,
  LeaseMessageSchema,
  standingStatusBody,
  topicName,
} from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import type { Loop } from '../../../daemon/run.ts'
import { beginOperation } from '../../../daemon/watchdog/event-loop.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { follow } from '../../store/follow.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { Broker, NodeListener, NodeMessage, Peer } from '../broker.ts'
import { identityConflicts } from './identity-conflicts.ts'
import { newestFirst } from './latest-only.ts'
import { messageBodies } from './message-bodies.ts'
import { nodeDigests } from './node-digests.ts'
import { nodeLeases } from './node-leases.ts'
import { type LeaseNews, nodeStatusAfter, standingReport } from './node-report.ts'
import { nodeReports } from './node-reports.ts'

export type NodeInboxNeeds = {
  readonly store: Store
  readonly usage: Pick<UsageBoard, 'receive'>
  readonly broker: Pick<Broker, 'publish'>
  readonly events: EventRecorder
  readonly podsOf: (node: string) => readonly StoredObject<'pods'>[]
  readonly clock: Clock
  readonly log: Log
  readonly registry: Registry
}

export interface NodeInbox extends NodeListener, Loop {}

export function nodeInbox(needs: NodeInboxNeeds): NodeInbox {
  const { store, broker, events, clock, log } = needs
  const peers = new Map<string, Peer>()
  const conflicts = identityConflicts({ events, clock, log })
  const digests = nodeDigests()
  /** Nodes that speak, but have no Node object yet. */
  const unregistered = new Set<string>()
  /** Nodes that announced their goodbye and are still connected. */
  const leaving = new Set<string>()
  /** Nodes that were Unknown at their last heartbeat. */
  const unknownBefore = new Set<string>()
  const queue = newestFirst()
  const bodies = messageBodies(needs)
  const reports = nodeReports({ ...needs, bodies, digests, unregistered: (node) => void unregistered.add(node) })
  /** For lines that a node can cause. */
  const limited = limitLog(log, clock)
  /** A whole fleet may connect at one time: a hundred lines a minute and a count, and they hide no warnings. */
  const connectionLog = limitLog(log, clock)

  const leases = nodeLeases({ store, clock })
  const lease = (node: string, news: LeaseNews) => leases.tell(node, news, peers.get(node) ?? noPeer)
  const leaseFailed = (node: string) => (error: unknown) => failed({ node, topic: { kind: 'connection', node } }, error)

  const askForReport = async (node: string, reason: string) => {
    connectionLog.info(`${node}/asked`, 'Node asked for its whole state', { node, reason })
    const call: CallMessage = { call: 'report', reason }
    await broker.publish({ kind: 'calls', node }, JSON.stringify(call))
  }

  /**
   * A late heartbeat made Ready Unknown. The node has no sign of that, and would report its status again minutes later only. True at the
   * second heartbeat: before that a status may be on its way.
   */
  const staysUnknown = (node: string) => {
    const conditions = nodes.get({ namespace: '', name: node })?.status?.conditions ?? []
    const isUnknown = conditions.some(({ type, status }) => type === 'Ready' && status === 'Unknown')
    if (isUnknown && !leaving.has(node) && !unknownBefore.has(node)) {
      unknownBefore.add(node)
      return false
    }
    return unknownBefore.delete(node) && isUnknown && !leaving.has(node)
  }

  const connection = async (message: NodeMessage) => {
    const said = bodies.decoded(ConnectionMessageSchema, message)
    if (said === undefined) return
    const { state, reason, expectedBackSeconds } = said
    if (state === 'online') conflicts.booted(message.node, said.bootID)
    // A broker that does not see connections calls no `connected`: the node publishes everything after this, too.
    if (state === 'online' && !peers.has(message.node)) digests.forget(message.node)
    if (state === 'goodbye') leaving.add(message.node)
    else leaving.delete(message.node)
    connectionLog.info(`${message.node}/connection`, 'Node connection', {
      node: message.node,
      state,
      reason,
      expectedBackSeconds,
    })
    await lease(message.node, { news: 'connection', message: said })
  }

  /** undefined: all of it is done. That is the case of most of a fleet's messages. */
  const heartbeat = (message: NodeMessage): Promise<void> | undefined => {
    const { node, body } = message
    const isShort = body === '' || body === standingStatusBody
    const said = isShort ? undefined : bodies.decoded(LeaseMessageSchema, message)
    if (said === undefined && !isShort) return
    const renewing = leases.renew(node, peers.get(node) ?? noPeer)
    if (renewing === undefined) {
      return lease(node, { news: 'heartbeat' }).then(() => afterHeartbeat(message, said?.digest))
    }
    renewing.catch((error) => failed(message, error))
    return afterHeartbeat(message, said?.digest)
  }

  const afterHeartbeat = ({ node, body }: NodeMessage, digest: string | undefined): Promise<void> | undefined => {
    if (digests.differs(node, digest)) return askForReport(node, 'digest differs')
    if (staysUnknown(node)) return askForReport(node, 'Ready is Unknown')
    return body === standingStatusBody ? statusStands(node) : undefined
  }

  /** As if the node had published the same status once more; one that was changed here must be published. */
  const statusStands = async (node: string) => {
    let isOurs = true
    const written = await rewrite({ store, clock }, 'nodes', {
      key: { namespace: '', name: node },
      part: 'status',
      change(present) {
        const report = standingReport(present.status)
        isOurs = report !== undefined
        return report && { ...present, status: nodeStatusAfter(present.status, report, clock.wallMs()) }
      },
    })
    if (written === undefined && isOurs) unregistered.add(node)
    if (!isOurs) await askForReport(node, 'its status is not the one it published')
  }

  const take = async (message: NodeMessage): Promise<void> => {
    const { node, topic } = message
    const name = topicName(topic)
    beginOperation('message', topic.kind)
    if (topic.kind === 'status' || topic.kind === 'pod') digests.heard(node, name, message.body)
    switch (topic.kind) {
      case 'connection':
        return connection(message)
      case 'lease':
        return await heartbeat(message)
      case 'status':
        return queue.run(name, () => reports.status(message))
      case 'pod':
        return queue.run(name, () => reports.pod(message, topic.uid))
      case 'events':
        return reports.event(message)
      case 'stats':
        return reports.stats(message)
      case 'desired':
      case 'calls':
        return bodies.drop(message, 'NotANodeTopic')
    }
  }

  const failed = (message: Pick<NodeMessage, 'node' | 'topic'>, error: unknown) => {
    const topic = topicName(message.topic)
    limited.warn(`${message.node}/not stored`, 'Message of a node not stored', { node: message.node, topic, error })
    // The next lease shows the difference, and the node says it again.
    digests.lost(message.node, topic)
  }

  /** A node may publish before it is registered: it is asked to publish again when it is. */
  const nodes = follow({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined) {
      if (previous === undefined) return
      conflicts.forget(previous.metadata.name)
      void leases.nodeWent(previous).catch(leaseFailed(previous.metadata.name))
      return
    }
    const { name } = present.metadata
    void leases.nodeCame(present, previous === undefined).catch(leaseFailed(name))
    if (unregistered.delete(name)) void askForReport(name, 'just registered')
  })

  return {
    name: 'node-inbox',
    async run(signal) {
      try {
        await nodes.run(signal)
      } finally {
        limited.close()
        connectionLog.close()
        bodies.close()
      }
    },
    message(message) {
      const taking = message.topic.kind === 'lease' ? heartbeat(message) : take(message)
      return taking?.catch((error) => failed(message, error))
    },
    connected(node, peer) {
      conflicts.connected(node, peer.address, peers.has(node))
      digests.forget(node)
      peers.set(node, peer)
    },
    disconnected(node) {
      peers.delete(node)
      digests.forget(node)
      leaving.delete(node)
      unknownBefore.delete(node)
      unregistered.delete(node)
      void lease(node, { news: 'disconnected' }).catch(leaseFailed(node))
    },
  }
}

const noPeer: Peer = {}
