/** Leaves out of the reports of a node the addresses that are not its own, and records an Event that names them. */
import { isDeepStrictEqual } from 'node:util'
import {
  type AddressRules,
  internalIPsOf,
  withOwnAddresses,
  withPossibleAddresses,
} from '../../../api/node/reported-addresses.ts'
import type { Node, NodeStatus } from '../../../api/node.ts'
import type { Pod, PodStatus } from '../../../api/pod.ts'
import { topicName } from '../../../api/topics.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keySets } from '../../store/indexes/key-sets.ts'
import type { NodeMessage } from '../broker.ts'
import type { MessageBodies } from './message-bodies.ts'
import type { NodeDigests } from './node-digests.ts'

export interface ReportedAddresses {
  ofNode(message: NodeMessage, status: NodeStatus, node: Node | undefined): NodeStatus
  ofPod(message: NodeMessage, status: PodStatus, pod: Pod, node: Node | undefined): PodStatus
  /** A node whose own addresses changed publishes again what was left out: it may be right by now. */
  nodeChanged(present: Node | undefined, previous: Node | undefined): void
}

export type ReportedAddressesNeeds = {
  readonly rules: AddressRules
  readonly bodies: Pick<MessageBodies, 'recordWrongAddresses'>
  readonly digests: Pick<NodeDigests, 'lost'>
  readonly events: EventRecorder
}

/**
 * Topics that are remembered for one node: more than it has pods. Pods go without a report, and a node may report wrong
 * addresses for each new one.
 */
export const mostTopics = 1_000

export function reportedAddresses({ rules, bodies, digests, events }: ReportedAddressesNeeds): ReportedAddresses {
  /** By address: the nodes that have it as InternalIP. */
  const owners = keySets()
  /** By node: what was left out of each of its messages, by topic: that of its status, and those of pods that are or were bound to it. */
  const leftOut = new Map<string, Map<string, string>>()

  const isOfAnother = (name: string) => (ip: string) => [...owners.of(ip)].some((owner) => owner !== name)
  /** An Event and a log line for what was not left out of the last message, too. */
  const record = (message: NodeMessage, object: Node | Pod, wrong: readonly string[]) => {
    const topic = topicName(message.topic)
    const topics = leftOut.get(message.node) ?? new Map<string, string>()
    const text = wrong.join('; ')
    const before = topics.get(topic)
    if (text === '') topics.delete(topic)
    else topics.set(topic, text)
    for (const oldest of topics.keys()) {
      if (topics.size <= mostTopics) break
      topics.delete(oldest)
    }
    if (topics.size > 0) leftOut.set(message.node, topics)
    else leftOut.delete(message.node)
    if (text === '' || text === before) return
    bodies.recordWrongAddresses(message, wrong)
    const { name = '', namespace, uid } = object.metadata
    const recorded = events.record({
      object: {
        ...{ apiVersion: 'v1', kind: object.kind, name },
        ...(namespace !== undefined && { namespace }),
        ...(uid !== undefined && { uid }),
      },
      type: 'Warning',
      reason: 'AddressNotOwned',
      message: `Node ${message.node} reported addresses that are not its own, which are ignored: ${text}`,
      component: 'bramble-controller',
    })
    recorded.catch(() => undefined) // The log has it.
  }

  return {
    ofNode(message, given, node) {
      const { status, wrong } = withPossibleAddresses(given, rules)
      if (node !== undefined) record(message, node, wrong)
      return status
    },
    ofPod(message, given, pod, node) {
      const { status, wrong } = withOwnAddresses(given, pod, node, rules, isOfAnother(message.node))
      record(message, pod, wrong)
      return status
    },
    nodeChanged(present, previous) {
      const name = (present ?? previous)?.metadata.name ?? ''
      if (isDeepStrictEqual(ownedBy(present), ownedBy(previous))) return
      for (const ip of addressesOf(previous)) owners.delete(ip, name)
      for (const ip of addressesOf(present)) owners.add(ip, name)
      for (const topic of leftOut.get(name)?.keys() ?? []) digests.lost(name, topic)
      if (present === undefined) leftOut.delete(name)
    },
  }
}

function addressesOf(node: Node | undefined): readonly string[] {
  return node === undefined ? [] : internalIPsOf(node)
}

function ownedBy(node: Node | undefined) {
  return node && [internalIPsOf(node), node.spec?.podCIDR, node.spec?.podCIDRs]
}
