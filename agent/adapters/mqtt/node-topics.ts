/** The topics of one node, as text. */
import { topicName } from '../../../api/topics.ts'

export type NodeTopics = ReturnType<typeof nodeTopics>

export function nodeTopics(node: string) {
  return {
    connection: topicName({ kind: 'connection', node }),
    lease: topicName({ kind: 'lease', node }),
    status: topicName({ kind: 'status', node }),
    events: topicName({ kind: 'events', node }),
    stats: topicName({ kind: 'stats', node }),
    desired: topicName({ kind: 'desired', node }),
    calls: topicName({ kind: 'calls', node }),
    controller: topicName({ kind: 'controller' }),
    pod: (uid: string) => topicName({ kind: 'pod', node, uid }),
  } as const
}
