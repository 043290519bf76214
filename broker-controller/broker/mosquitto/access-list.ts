/** Who may publish and read what, in the form of mosquitto.conf(5): the rules of `../mqtt/authorization.ts` for an external server. */
import { nodeIdentity } from '../../../api/identity.ts'
import { dnsSubdomainProblem } from '../../../api/names.ts'
import { type NodeTopic, topicName, topicRules } from '../../../api/topics.ts'

const nodeKinds = ['connection', 'lease', 'status', 'events', 'stats', 'desired', 'calls'] as const

/**
 * A block for the controller and one for each node; other clients have no rights. `nodes` in any order: names that cannot be in a topic
 * are left out. Mosquitto has no rules for QoS and retention.
 */
export function accessList(controller: string, nodes: Iterable<string>): string {
  const named = [...new Set(nodes)].filter((node) => dnsSubdomainProblem(node) === undefined).sort()
  return [
    '# Written by bramble-controller: changes are lost.',
    `user ${controller}`,
    'topic readwrite bramble/v1/#',
    ...named.flatMap((node) => ['', `user ${nodeIdentity(node).user}`, ...rulesOf(node)]),
    '',
  ].join('\n')
}

function rulesOf(node: string): readonly string[] {
  const topics: readonly NodeTopic[] = [
    ...nodeKinds.map((kind) => ({ kind, node })),
    // The UID of a pod is its last level.
    { kind: 'pod', node, uid: '+' },
  ]
  return [
    ...topics.map((topic) => {
      const right = topicRules[topic.kind].from === 'node' ? 'write' : 'read'
      return `topic ${right} ${topicName(topic)}`
    }),
    `topic read ${topicName({ kind: 'controller' })}`,
    `topic read ${topicName({ kind: 'network' })}`,
    `topic read ${topicName({ kind: 'services', shard: 0 }).replace(/0$/, '+')}`,
  ]
}
