/** MQTT filters for every topic of the protocol, for servers and clients that have other rules than the embedded broker. */
import { type Topic, topicName, topicRules } from '../../api/topics.ts'

/** A filter for the topics of each kind. `node`: a name, or '+' for all nodes. */
export function topicFilters(node: string): { readonly [Kind in Topic['kind']]: string } {
  const ofNode = (kind: Exclude<Topic['kind'], 'pod' | 'controller' | 'network' | 'services'>) =>
    topicName({ kind, node })
  return {
    connection: ofNode('connection'),
    lease: ofNode('lease'),
    status: ofNode('status'),
    events: ofNode('events'),
    stats: ofNode('stats'),
    contents: ofNode('contents'),
    storage: ofNode('storage'),
    pod: topicName({ kind: 'pod', node, uid: '+' }),
    desired: ofNode('desired'),
    calls: ofNode('calls'),
    policies: ofNode('policies'),
    volumes: ofNode('volumes'),
    controller: topicName({ kind: 'controller' }),
    network: topicName({ kind: 'network' }),
    services: topicName({ kind: 'services', shard: 0 }).replace(/0$/, '+'),
  }
}

/** Those of all topics on which `from` publishes. */
export function filtersFrom(from: 'node' | 'controller', node: string): readonly string[] {
  const filters = topicFilters(node)
  return kinds(filters)
    .filter((kind) => topicRules[kind].from === from)
    .map((kind) => filters[kind])
}

function kinds(filters: { readonly [Kind in Topic['kind']]: string }): readonly Topic['kind'][] {
  const isKind = (name: string): name is Topic['kind'] => name in filters
  return Object.keys(filters).filter(isKind)
}
