/** The topics of one node, as text. */
import { serviceShards } from '../../../api/network/service-endpoints.ts'
import { topicName } from '../../../api/topics.ts'

export type NodeTopics = ReturnType<typeof nodeTopics>

export function nodeTopics(node: string) {
  return {
    connection: topicName({ kind: 'connection', node }),
    lease: topicName({ kind: 'lease', node }),
    status: topicName({ kind: 'status', node }),
    events: topicName({ kind: 'events', node }),
    stats: topicName({ kind: 'stats', node }),
    contents: topicName({ kind: 'contents', node }),
    desired: topicName({ kind: 'desired', node }),
    calls: topicName({ kind: 'calls', node }),
    policies: topicName({ kind: 'policies', node }),
    volumes: topicName({ kind: 'volumes', node }),
    storage: topicName({ kind: 'storage', node }),
    controller: topicName({ kind: 'controller' }),
    network: topicName({ kind: 'network' }),
    /** By shard. */
    services: Array.from({ length: serviceShards }, (_, shard) => topicName({ kind: 'services', shard })),
    pod: (uid: string) => topicName({ kind: 'pod', node, uid }),
  } as const
}
