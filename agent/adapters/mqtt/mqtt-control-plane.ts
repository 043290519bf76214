/** ControlPlane on MQTT over mutual TLS: the parts of one session, and the connection that they use. */
import { usualLeaseDurationSeconds } from '../../../api/lease.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { NodeCredentials } from '../../node/certificate/certificate-manager.ts'
import type { ControlPlane, ControlPlaneListener, Leave } from '../../node/connection/control-plane.ts'
import { controllerTerms } from '../../node/connection/controller-terms.ts'
import { leaseMessages } from '../../node/connection/lease-messages.ts'
import { connectionMessages } from './connection-messages.ts'
import { contentsReport } from './contents-report.ts'
import {
  type ConnectionSession,
  type MqttConnectionSettings,
  type MqttTransport,
  mqttConnection,
} from './mqtt-connection.ts'
import type { MqttLink } from './mqtt-link.ts'
import { nodeTopics } from './node-topics.ts'
import { receivedMessages } from './received-messages.ts'
import { reportMessages } from './report-messages.ts'
import { storageReport } from './storage-report.ts'

export type MqttControlPlaneNeeds = {
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Called when the agent stops: the reason, and for how long. */
  readonly leave?: () => Promise<Leave>
  /** How the broker is reached. Default: MQTT over TLS. */
  readonly transport?: MqttTransport
}

export type MqttControlPlaneSettings = MqttConnectionSettings & {
  readonly agentVersion: string
  readonly bootID: string
  /** Reported to the controller, which expects a heartbeat four times within it. */
  readonly leaseDurationSeconds?: number
  /** Another controller may lead meanwhile. Default: there is only one. */
  readonly othersLead?: () => boolean
  /** Events other than warnings are not published. */
  readonly warningsOnly?: boolean
}

export interface MqttControlPlane extends ControlPlane {
  /** Closes the present connection and opens one with these credentials. */
  use(credentials: NodeCredentials): void
  /** Connects, and connects again, until `signal` aborts; then publishes the goodbye. */
  run(listener: ControlPlaneListener, signal: AbortSignal): Promise<void>
}

export function mqttControlPlane(needs: MqttControlPlaneNeeds, settings: MqttControlPlaneSettings): MqttControlPlane {
  const { clock, log } = needs
  const { nodeName, bootID, agentVersion, leaseDurationSeconds, warningsOnly = false } = settings
  const topics = nodeTopics(nodeName)
  const terms = controllerTerms(leaseDurationSeconds ?? usualLeaseDurationSeconds)
  const leases = leaseMessages(topics.lease, terms, settings.othersLead)
  const { open, closed, isIdle, ...reports } = reportMessages({ nodeName, topics, leases, warningsOnly, clock, log })
  const messages = connectionMessages({
    topic: topics.connection,
    facts: {
      bootID,
      agentVersion,
      references: true,
      ...(leaseDurationSeconds !== undefined && { leaseDurationSeconds }),
    },
    leave: needs.leave,
    clock,
    log,
  })
  const contents = contentsReport(topics.contents, () => listener?.heldContents?.())
  const storage = storageReport(topics.storage)
  const received = receivedMessages({
    topics,
    republish() {
      reports.reportEverything()
      contents.publish()
      storage.publish()
    },
    announced(message) {
      leases.received(message)
      terms.received(message)
      contents.received(message)
      storage.received(message)
      if (message.volumes === true) followed.follow('volumes', [topics.volumes])
      // Policies first: they are there when the network is complete.
      if (message.network === true && message.policies === true) followed.follow('policies', [topics.policies])
      if (message.network === true) followed.follow('network', [topics.network, ...topics.services])
    },
    log,
  })
  let listener: ControlPlaneListener | undefined
  let link: MqttLink | undefined
  const followed = followedTopics(log)

  const session: ConnectionSession = {
    connecting() {
      leases.opened()
      terms.opened()
    },
    receive: (...message) => listener && received.receive(listener, ...message),
    async greet(on) {
      followed.opened(on)
      contents.opened(on)
      storage.opened(on)
      await messages.online(on)
      await on.subscribe([topics.desired, topics.calls, topics.controller])
    },
    open(on, guard) {
      link = on
      open(on, guard)
      listener?.connected?.()
    },
    stop: messages.stop,
    closed() {
      const wasOpen = link !== undefined
      link = undefined
      followed.closed()
      received.closed()
      contents.closed()
      storage.closed()
      closed()
      if (wasOpen) listener?.disconnected?.()
    },
    get epoch() {
      return received.epoch
    },
  }
  const connection = mqttConnection({ ...needs, terms, session, will: messages.will }, settings)

  return {
    ...reports,
    reportContents: contents.publish,
    reportStorage: storage.report,
    get connected() {
      return link !== undefined
    },
    get settled() {
      return isIdle()
    },
    get leaseDurationSeconds() {
      return terms.leaseDurationSeconds
    },
    publishLeave: (leave) => messages.leave(link, leave),
    use: connection.use,
    async run(to, signal) {
      listener = to
      await connection.run(signal)
    },
  }
}

/** What the controller may announce that it publishes. */
const announcements = ['network', 'policies', 'volumes'] as const

/** Subscribes once for each link to what its controller has announced: it closes on a subscription to a topic that it has not. */
function followedTopics(log: Log) {
  /** The link on which it was not announced yet. */
  const greeted = new Map<(typeof announcements)[number], MqttLink>()
  return {
    opened(on: MqttLink) {
      for (const what of announcements) greeted.set(what, on)
    },
    closed: () => greeted.clear(),
    follow(what: (typeof announcements)[number], topics: readonly string[]) {
      const on = greeted.get(what)
      greeted.delete(what)
      on?.subscribe(topics).catch((error: unknown) => {
        log.warn('Messages of the controller are not received', { what, error })
      })
    },
  }
}
