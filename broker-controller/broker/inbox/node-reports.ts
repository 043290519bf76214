/** Statuses, pods, events and statistics of nodes → the store and the usage board. */
import { EventSchema } from '../../../api/event.ts'
import { NodeStatusSchema } from '../../../api/node.ts'
import { PodMessageSchema, StatsMessageSchema, topicName } from '../../../api/topics.ts'
import { tokenBuckets } from '../../../daemon/token-bucket.ts'
import { removeIfThere, rewrite } from '../../store/rewrite.ts'
import type { NodeMessage } from '../broker.ts'
import type { MessageBodies } from './message-bodies.ts'
import type { NodeDigests } from './node-digests.ts'
import type { NodeInboxNeeds } from './node-inbox.ts'
import { emptiedPod, isStanding, nodeStatusAfter, podStatusAfter, subjectOf } from './node-report.ts'
import { boundedNodeStatus, boundedPodStatus } from './report-bounds.ts'

export type NodeReportsNeeds = Omit<NodeInboxNeeds, 'broker' | 'log' | 'registry'> & {
  readonly bodies: MessageBodies
  readonly digests: Pick<NodeDigests, 'lost'>
  /** Called for a node whose status has no Node object to go to. */
  readonly unregistered: (node: string) => void
}

export interface NodeReports {
  status(message: NodeMessage): Promise<void>
  pod(message: NodeMessage, uid: string): Promise<void>
  event(message: NodeMessage): Promise<void>
  stats(message: NodeMessage): void
}

/** The events of 110 pods that start at one time, and more than a node needs afterwards. */
const eventsOfNode = { perSecond: 5, burst: 1000 }

/** Each rejects if the store does. Of a message whose body is not valid nothing is written. */
export function nodeReports(needs: NodeReportsNeeds): NodeReports {
  const { store, usage, events, podsOf, clock, bodies, digests, unregistered } = needs
  const eventRate = tokenBuckets(eventsOfNode, clock)

  const status = async (message: NodeMessage) => {
    const given = bodies.decoded(NodeStatusSchema, message)
    if (given === undefined) return
    const { status: report, cut } = boundedNodeStatus(given)
    bodies.recordCut(message, cut)
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
    bodies.count(message, 'NoSuchNode')
    unregistered(message.node)
    digests.lost(message.node, topicName(message.topic))
  }

  const pod = async (message: NodeMessage, uid: string) => {
    if (message.body === '') return podGone(message.node, uid)
    const given = bodies.decoded(PodMessageSchema, message)
    if (given === undefined) return
    const { status, cut } = boundedPodStatus(given.status)
    bodies.recordCut(message, cut)
    const report = { ...given, status }
    const key = { namespace: report.namespace, name: report.name }
    const answer = podStatusAfter(message.node, uid, report, await store.get('pods', key))
    if (!answer.take) return bodies.drop(message, answer.because)
    await rewrite({ store, clock }, 'pods', {
      key,
      uid,
      part: 'status',
      change(present) {
        const again = podStatusAfter(message.node, uid, report, present)
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
    if (eventRate.take(message.node) > 0) return bodies.drop(message, 'TooManyEvents')
    const report = bodies.decoded(EventSchema, message)
    if (report === undefined) return
    const object = subjectOf(message.node, report, podsOf(message.node))
    if (object === undefined) return bodies.drop(message, 'NotItsObject')
    await events.record({
      object,
      type: report.type === 'Warning' ? 'Warning' : 'Normal',
      reason: report.reason ?? 'Unknown',
      message: report.message ?? '',
      component: report.source?.component ?? 'kubelet',
      host: message.node,
    })
  }

  const stats = (message: NodeMessage) => {
    const report = bodies.decoded(StatsMessageSchema, message)
    if (report !== undefined) usage.receive(message.node, report)
  }

  return { status, pod, event, stats }
}
