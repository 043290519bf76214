/** Asks nodes to publish their whole state again. */
import type { CallMessage } from '../../../api/topics.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { Broker } from '../broker.ts'

export interface ReportRequests {
  /** Rejects if the broker does not accept the message. */
  send(node: string, reason: string): Promise<void>
  /** Asks the node when its Node object exists: a report before that cannot be stored. */
  sendOnceRegistered(node: string): void
  /** The Node object exists. Resolves at once if the node need not be asked. */
  registered(node: string): Promise<void>
  /** The node has disconnected; it publishes everything when it connects. */
  forget(node: string): void
}

export function reportRequests(broker: Pick<Broker, 'publish'>, log: LimitedLog): ReportRequests {
  const unregistered = new Set<string>()
  const send = async (node: string, reason: string) => {
    log.info(`${node}/asked`, 'Full state of a node requested', { node, reason })
    const call: CallMessage = { call: 'report', reason }
    await broker.publish({ kind: 'calls', node }, JSON.stringify(call))
  }
  return {
    send,
    sendOnceRegistered: (node) => void unregistered.add(node),
    async registered(node) {
      if (unregistered.delete(node)) await send(node, 'just registered')
    },
    forget: (node) => void unregistered.delete(node),
  }
}
