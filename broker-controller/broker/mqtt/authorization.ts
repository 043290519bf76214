/** Decides whether a node may publish or subscribe to a topic. Its certificate identifies the node; the table of topics has the rules. */
import { isFleetTopic, type NodeTopic, parseTopic, type Topic, topicRules } from '../../../api/topics.ts'

export type Publication = { readonly topic: string; readonly qos: number; readonly retain: boolean }

/** `code` is the label of the metric, `reason` the text of the log line. */
export type Refusal = { readonly allowed: false; readonly code: RefusalCode; readonly reason: string }
export type Permission<T extends Topic> = { readonly allowed: true; readonly topic: T } | Refusal

export type RefusalCode =
  | 'NotANode'
  | 'Revoked'
  | 'AuthorityGone'
  | 'TooLarge'
  | 'KeepAlive'
  | 'UnknownTopic'
  | 'ForeignTopic'
  | 'ControllerTopic'
  | 'NodeTopic'
  | 'WrongQoS'
  | 'WrongRetain'

/** A last will is a publication like any other. */
export function mayPublish(node: string, { topic: name, qos, retain }: Publication): Permission<NodeTopic> {
  const topic = parseTopic(name)
  if (topic === undefined) return refusal('UnknownTopic', `${name} is not a topic of this protocol`)
  const rule = topicRules[topic.kind]
  if (isFleetTopic(topic) || rule.from === 'controller') {
    return refusal('ControllerTopic', `only the controller publishes on ${name}`)
  }
  if (topic.node !== node) return refusal('ForeignTopic', `${name} belongs to node ${topic.node}`)
  if (qos > rule.qos) return refusal('WrongQoS', `${topic.kind} messages have QoS ${rule.qos}, this one has ${qos}`)
  if (retain !== rule.retain) {
    return refusal('WrongRetain', `${topic.kind} messages are ${rule.retain ? '' : 'not '}retained`)
  }
  return { allowed: true, topic }
}

/** A filter names one topic; wildcards are not allowed. */
export function maySubscribe(node: string, filter: string): Permission<Topic> {
  if (/[+#]/.test(filter))
    return refusal('UnknownTopic', `${filter} has wildcards, and a node reads single topics only`)
  const topic = parseTopic(filter)
  if (topic === undefined) return refusal('UnknownTopic', `${filter} is not a topic of this protocol`)
  if (isFleetTopic(topic)) return { allowed: true, topic }
  if (topic.node !== node) return refusal('ForeignTopic', `${filter} belongs to node ${topic.node}`)
  if (topicRules[topic.kind].from === 'node') return refusal('NodeTopic', `only the controller reads ${filter}`)
  return { allowed: true, topic }
}

function refusal(code: RefusalCode, reason: string): Refusal {
  return { allowed: false, code, reason }
}
