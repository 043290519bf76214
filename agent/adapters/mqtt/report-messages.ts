/** The reports of a node as messages: its status, Events, usage and heartbeats. */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ControlPlane } from '../../node/connection/control-plane.ts'
import { eventLimit } from '../../node/connection/event-limit.ts'
import type { LeaseMessages } from '../../node/connection/lease-messages.ts'
import type { LinkGuard } from '../../node/connection/link-guard.ts'
import { publishQueue } from '../../node/connection/publish-queue.ts'
import type { MqttLink } from './mqtt-link.ts'
import type { NodeTopics } from './node-topics.ts'

export type ReportMessagesNeeds = {
  readonly nodeName: string
  readonly topics: NodeTopics
  readonly leases: LeaseMessages
  /** Events other than warnings are not published. */
  readonly warningsOnly: boolean
  readonly clock: Clock
  readonly log: Log
}

type Reporting =
  | 'reportNodeStatus'
  | 'confirmNodeStatus'
  | 'reportPod'
  | 'reportPodGone'
  | 'reportEvent'
  | 'sendStats'
  | 'reportEverything'
  | 'renewLease'

export interface ReportMessages extends Pick<ControlPlane, Reporting> {
  /** Everything is published on this link from now on. */
  open(link: MqttLink, guard: Pick<LinkGuard, 'check'>): void
  closed(): void
  /** All reports are acknowledged, or there is no link. */
  isIdle(): boolean
}

const mostEvents = 100

export function reportMessages(needs: ReportMessagesNeeds): ReportMessages {
  const { nodeName, topics, leases, warningsOnly, clock, log } = needs
  const limited = eventLimit(clock)
  let current: { readonly link: MqttLink; readonly guard: Pick<LinkGuard, 'check'> } | undefined
  let isPosted = false

  const logPosted = (topic: string, body: string) => {
    if (isPosted || topic !== topics.status) return
    isPosted = true
    log.info('Node status posted', { node: nodeName, ready: isReadyIn(body) })
  }
  const queue = publishQueue({ mostQueued: mostEvents, acknowledged: logPosted })

  const renewLease = () => {
    if (current === undefined) return false
    const { link, guard } = current
    // Also if the link accepts nothing: that is a reason to check what was sent before.
    guard.check()
    if (!link.canSend()) return false
    const { topic, body, confirmed } = leases.next(queue.digest())
    if (confirmed !== 'QoS 1') link.send(topic, body)
    if (confirmed !== 'no') {
      const answered = confirmed === 'ping' ? link.ping() : link.publish(topic, body, { qos: 1, retain: false })
      answered.catch((cause) => link.abandon(new Error('The controller does not answer', { cause })))
    }
    return true
  }

  return {
    reportNodeStatus: (status) => queue.publishState(topics.status, JSON.stringify(status)),
    confirmNodeStatus() {
      if (current === undefined || !leases.canConfirmStatus || !queue.isAcknowledged(topics.status)) return false
      leases.confirmStatus()
      return true
    },
    reportPod: (pod) => queue.publishState(topics.pod(pod.uid), JSON.stringify(pod)),
    reportPodGone: (uid) => queue.publishState(topics.pod(uid), ''),
    reportEvent(event) {
      const published = !warningsOnly || event.type === 'Warning' ? limited(event) : undefined
      if (published !== undefined) queue.enqueue(topics.events, JSON.stringify(published))
    },
    sendStats: (message) => void current?.link.send(topics.stats, JSON.stringify(message)),
    reportEverything: queue.republish,
    renewLease,
    open(link, guard) {
      current = { link, guard }
      queue.open(link)
      renewLease()
      const dropped = queue.dropped()
      if (dropped > 0) log.warn('Events were dropped while there was no connection', { dropped })
    },
    closed() {
      current = undefined
      queue.closed()
    },
    isIdle: queue.isIdle,
  }
}

/** Ready condition in a NodeStatus that this agent encoded itself. */
function isReadyIn(status: string): boolean {
  const { conditions = [] } = JSON.parse(status) as { conditions?: { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}
