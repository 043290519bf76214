/** Statuses, pods, events and statistics of nodes → the store and the usage board. */
import { EventSchema } from '../../../api/event.ts'
import { NodeStatusSchema } from '../../../api/node.ts'
import { PodMessageSchema, StatsMessageSchema, topicName } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { tokenBuckets } from '../../../daemon/limits/token-bucket.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { removeOrRewrite, rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { NodeMessage } from '../broker.ts'
import { involvedObjectOf } from './event-object.ts'
import type { MessageBodies } from './message-bodies.ts'
import type { NodeDigests } from './node-digests.ts'
import { isUnchangedStatus, nodeStatusAfter } from './node-status-report.ts'
import { podStatusAfter, removedPod } from './pod-status-report.ts'
import { boundedNodeStatus, boundedPodStatus } from './report-bounds.ts'
import type { ReportedAddresses } from './reported-addresses.ts'

export type NodeReportsNeeds = {
  readonly store: Store
  readonly usage: Pick<UsageBoard, 'receive'>
  readonly events: EventRecorder
  readonly podsOf: (node: string) => readonly StoredObject<'pods'>[]
  readonly clock: Clock
  readonly bodies: MessageBodies
  readonly digests: Pick<NodeDigests, 'lost'>
  readonly addresses: Pick<ReportedAddresses, 'ofNode' | 'ofPod'>
  /** Called for a node that reported its status and has no Node object. */
  readonly unregistered: (node: string) => void
}

export interface NodeReports {
  status(message: NodeMessage): Promise<void>
  pod(message: NodeMessage, uid: string): Promise<void>
  event(message: NodeMessage): Promise<void>
  stats(message: NodeMessage): void
}

/** Enough for 110 pods that start at one time, and more than a node needs afterwards. */
const eventsOfNode = { perSecond: 5, burst: 1000 }

/** An agent counts what it did not publish, for an hour: more than one in a second is not believed. */
const mostTimes = 3600

/** Each rejects if the store does. A message with an invalid body is dropped. */
export function nodeReports(needs: NodeReportsNeeds): NodeReports {
  const { store, usage, events, podsOf, clock, bodies, digests, addresses, unregistered } = needs
  const eventRate = tokenBuckets(eventsOfNode, clock)
  const storing = statusesUnderWay()
  const nodeOf = (name: string) => store.get('nodes', { namespace: '', name })

  const status = async (message: NodeMessage) => {
    const given = bodies.decoded(NodeStatusSchema, message)
    if (given === undefined) return
    const { status: bounded, cut } = boundedNodeStatus(given)
    bodies.recordCut(message, cut)
    const report = addresses.ofNode(message, bounded, await nodeOf(message.node))
    let isUnchanged = false
    const written = await rewrite({ store, clock }, 'nodes', {
      key: { namespace: '', name: message.node },
      part: 'status',
      change(node) {
        const nowMs = clock.wallMs()
        const after = nodeStatusAfter(node.status, report, nowMs)
        isUnchanged = isUnchangedStatus(node.status, after, nowMs)
        return isUnchanged ? undefined : { ...node, status: after }
      },
    })
    if (written !== undefined || isUnchanged) return
    bodies.count(message, 'NoSuchNode')
    unregistered(message.node)
    digests.lost(message.node, topicName(message.topic))
  }

  const pod = async (message: NodeMessage, uid: string) => {
    if (message.body === '') return podRemoved(message.node, uid)
    const given = bodies.decoded(PodMessageSchema, message)
    if (given === undefined) return
    const { status: bounded, cut } = boundedPodStatus(given.status)
    bodies.recordCut(message, cut)
    await storing.ended(message.node)
    const key = { namespace: given.namespace, name: given.name }
    const reported = await store.get('pods', key)
    const answer = podStatusAfter(message.node, uid, { ...given, status: bounded }, reported)
    if (!answer.isAccepted) return bodies.drop(message, answer.because)
    const node = await nodeOf(message.node)
    const status = reported === undefined ? bounded : addresses.ofPod(message, bounded, reported, node)
    const report = { ...given, status }
    await rewrite({ store, clock }, 'pods', {
      key,
      uid,
      part: 'status',
      change(present) {
        const again = podStatusAfter(message.node, uid, report, present)
        return again.isAccepted ? { ...present, status: again.status } : undefined
      },
    })
  }

  const podRemoved = async (node: string, uid: string) => {
    const present = podsOf(node).find(({ metadata }) => metadata.uid === uid)
    if (present === undefined) return
    const { namespace = '', name } = present.metadata
    await removeOrRewrite({ store, clock }, 'pods', {
      key: { namespace, name },
      uid,
      plan(pod) {
        const plan = removedPod(pod, clock.wallMs())
        if (plan?.remove) return 'remove'
        return plan?.pod === pod ? undefined : plan?.pod
      },
    })
  }

  const event = async (message: NodeMessage) => {
    if (eventRate.take(message.node) > 0) return bodies.drop(message, 'TooManyEvents')
    const report = bodies.decoded(EventSchema, message)
    if (report === undefined) return
    const object = involvedObjectOf(message.node, report, podsOf(message.node))
    if (object === undefined) return bodies.drop(message, 'NotItsObject')
    await events.record({
      object,
      type: report.type === 'Warning' ? 'Warning' : 'Normal',
      reason: report.reason ?? 'Unknown',
      message: report.message ?? '',
      component: report.source?.component ?? 'kubelet',
      host: message.node,
      times: Math.min(Math.max(report.count ?? 1, 1), mostTimes),
      isLimited: true,
    })
  }

  const stats = (message: NodeMessage) => {
    const report = bodies.decoded(StatsMessageSchema, message)
    if (report !== undefined) usage.receive(message.node, report)
  }

  return { status: (message) => storing.run(message.node, () => status(message)), pod, event, stats }
}

/** The statuses of nodes that are being stored: pods that a node reported behind one have the addresses of that one. */
function statusesUnderWay() {
  const underWay = new Map<string, Promise<void>>()
  return {
    ended: (node: string) => underWay.get(node),
    async run(node: string, store: () => Promise<void>): Promise<void> {
      const stored = store()
      const settled = stored.catch(() => undefined)
      underWay.set(node, settled)
      await stored.finally(() => {
        if (underWay.get(node) === settled) underWay.delete(node)
      })
    },
  }
}
