/** What nodes say → the store. */

import { Counter, type Registry } from 'prom-client'
import { decode } from '../../api/decode.ts'
import { EventSchema } from '../../api/event.ts'
import { NodeStatusSchema } from '../../api/node.ts'
import { problemText } from '../../api/problem.ts'
import type { Described, TSchema } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import {
  type CallMessage,
  ConnectionMessageSchema,
  LeaseMessageSchema,
  PodMessageSchema,
  StatsMessageSchema,
  standingStatusBody,
  topicName,
} from '../../api/topics.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { limitLog } from '../../daemon/log-limit.ts'
import type { Loop } from '../../daemon/run.ts'
import { tokenBuckets } from '../../daemon/token-bucket.ts'
import { beginOperation } from '../../daemon/watchdog/event-loop.ts'
import type { EventRecorder } from '../store/event-recorder.ts'
import { follow } from '../store/follow.ts'
import { removeIfThere, rewrite } from '../store/rewrite.ts'
import type { Store, StoredObject } from '../store/store.ts'
import type { UsageBoard } from '../usage/usage-board.ts'
import type { Broker, NodeListener, NodeMessage, Peer } from './broker.ts'
import { identityConflicts } from './identity-conflicts.ts'
import { newestFirst } from './newest-first.ts'
import { nodeDigests } from './node-digests.ts'
import { nodeLeases } from './node-leases.ts'
import {
  emptiedPod,
  isStanding,
  type LeaseNews,
  nodeStatusAfter,
  podStatusAfter,
  standingReport,
  subjectOf,
} from './node-report.ts'
import { boundedNodeStatus, boundedPodStatus } from './report-bounds.ts'

export type NodeInboxNeeds = {
  readonly store: Store
  readonly usage: Pick<UsageBoard, 'told'>
  readonly broker: Pick<Broker, 'publish'>
  readonly events: EventRecorder
  readonly podsOf: (node: string) => readonly StoredObject<'pods'>[]
  readonly clock: Clock
  readonly log: Log
  readonly registry: Registry
}

export interface NodeInbox extends NodeListener, Loop {}

/** The events of 110 pods that start at one time, and more than a node has to say afterwards. */
const eventsOfNode = { perSecond: 5, burst: 1000 }

export function nodeInbox(needs: NodeInboxNeeds): NodeInbox {
  const { store, usage, broker, events, podsOf, clock, log, registry } = needs
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
  const dropped = new Counter({
    name: 'bramble_inbox_dropped_total',
    help: 'Messages of nodes that were not used',
    labelNames: ['kind', 'reason'],
    registers: [registry],
  })

  const shortened = new Counter({
    name: 'bramble_inbox_shortened_total',
    help: 'Reports of nodes with lists or texts that were longer than allowed and were cut',
    labelNames: ['kind'],
    registers: [registry],
  })
  /** For lines that a node can cause. */
  const limited = limitLog(log, clock)
  /** A whole fleet may connect at one time: a hundred lines a minute and a count, and they hide no warnings. */
  const connectionLog = limitLog(log, clock)
  const drops = limitLog(log, clock, { linesPerKey: 1, periodMs: 10 * 60_000 })
  const eventRate = tokenBuckets(eventsOfNode, clock)

  const noteCut = ({ node, topic }: NodeMessage, cut: readonly string[]) => {
    if (cut.length === 0) return
    shortened.inc({ kind: topic.kind })
    limited.warn(`${node}/cut`, 'Report of a node shortened', { node, topic: topicName(topic), fields: cut })
  }

  /** Counts it, and logs it within limits. */
  const drop = (message: NodeMessage, reason: string, problems: readonly string[] = []) => {
    const { node, topic } = message
    dropped.inc({ kind: topic.kind, reason })
    const key = `${node}/${topic.kind}/${reason}`
    drops.warn(key, 'Message of a node dropped', { node, topic: topicName(topic), reason, problems })
  }

  const understood = <const S extends TSchema>(schema: S, message: NodeMessage): Described<S> | undefined => {
    const decoded = decode(schema, parseJson(message.body))
    if (decoded.ok) return decoded.value
    drop(message, 'NotUnderstood', decoded.problems.slice(0, 10).map(problemText))
    return undefined
  }

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
    const said = understood(ConnectionMessageSchema, message)
    if (said === undefined) return
    const { state, reason, expectedBackSeconds } = said
    if (state === 'online') conflicts.booted(message.node, said.bootID)
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
    const said = isShort ? undefined : understood(LeaseMessageSchema, message)
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

  const status = async (message: NodeMessage) => {
    const given = understood(NodeStatusSchema, message)
    if (given === undefined) return
    const { status: report, cut } = boundedNodeStatus(given)
    noteCut(message, cut)
    let isKnown = false
    const written = await rewrite({ store, clock }, 'nodes', {
      key: { namespace: '', name: message.node },
      part: 'status',
      change(node) {
        const nowMs = clock.wallMs()
        const after = nodeStatusAfter(node.status, report, nowMs)
        isKnown = isStanding(node.status, after, nowMs)
        return isKnown ? undefined : { ...node, status: after }
      },
    })
    if (written !== undefined || isKnown) return
    dropped.inc({ kind: 'status', reason: 'NoSuchNode' })
    unregistered.add(message.node)
    digests.lost(message.node, topicName(message.topic))
  }

  const pod = async (message: NodeMessage, uid: string) => {
    if (message.body === '') return podGone(message.node, uid)
    const given = understood(PodMessageSchema, message)
    if (given === undefined) return
    const { status, cut } = boundedPodStatus(given.status)
    noteCut(message, cut)
    const said = { ...given, status }
    const key = { namespace: said.namespace, name: said.name }
    const answer = podStatusAfter(message.node, uid, said, await store.get('pods', key))
    if (!answer.take) return drop(message, answer.because)
    await rewrite({ store, clock }, 'pods', {
      key,
      uid,
      part: 'status',
      change(present) {
        const again = podStatusAfter(message.node, uid, said, present)
        return again.take ? { ...present, status: again.status } : undefined
      },
    })
  }

  const podGone = async (node: string, uid: string) => {
    const known = podsOf(node).find(({ metadata }) => metadata.uid === uid)
    if (known === undefined) return
    const { namespace = '', name } = known.metadata
    const key = { namespace, name }
    let remove = false
    await rewrite({ store, clock }, 'pods', {
      key,
      uid,
      change(present) {
        const plan = emptiedPod(present, clock.wallMs())
        remove = plan?.remove === true
        return plan === undefined || plan.remove || plan.pod === present ? undefined : plan.pod
      },
    })
    if (remove) await removeIfThere(store, 'pods', known)
  }

  const event = async (message: NodeMessage) => {
    if (eventRate.take(message.node) > 0) return drop(message, 'TooManyEvents')
    const said = understood(EventSchema, message)
    if (said === undefined) return
    const object = subjectOf(message.node, said, podsOf(message.node))
    if (object === undefined) return drop(message, 'NotItsObject')
    await events.record({
      object,
      type: said.type === 'Warning' ? 'Warning' : 'Normal',
      reason: said.reason ?? 'Unknown',
      message: said.message ?? '',
      component: said.source?.component ?? 'kubelet',
      host: message.node,
    })
  }

  const stats = (message: NodeMessage) => {
    const said = understood(StatsMessageSchema, message)
    if (said !== undefined) usage.told(message.node, said)
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
        return queue.run(name, () => status(message))
      case 'pod':
        return queue.run(name, () => pod(message, topic.uid))
      case 'events':
        return event(message)
      case 'stats':
        return stats(message)
      case 'desired':
      case 'calls':
        return drop(message, 'NotANodeTopic')
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
        drops.close()
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
