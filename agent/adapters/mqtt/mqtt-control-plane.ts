/** ControlPlane on MQTT over mutual TLS: what this node says and hears, and the loop that keeps the link. */

import { decode } from '../../../api/decode.ts'
import { decodeDesired } from '../../../api/desired.ts'
import { usualLeaseDurationSeconds } from '../../../api/lease.ts'
import { parseJson } from '../../../api/text/json.ts'
import {
  CallMessageSchema,
  type ConnectionMessage,
  ControllerMessageSchema,
  type NodeTopic,
  topicName,
} from '../../../api/topics.ts'
import { unlessAborted, withOwnSignal } from '../../../daemon/aborted.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { within } from '../../../daemon/deadline.ts'
import type { Log } from '../../../daemon/log.ts'
import { judgingMs, type KnownTime } from '../../../daemon/server-check.ts'
import type { NodeCredentials } from '../../node/certificate/certificate-manager.ts'
import type { ControlPlane, ControlPlaneListener, Leave } from '../../node/connection/control-plane.ts'
import { controllerTerms } from '../../node/connection/controller-terms.ts'
import { leaseMessages } from '../../node/connection/lease-messages.ts'
import { type LinkGuard, linkGuard } from '../../node/connection/link-guard.ts'
import { linkOutages } from '../../node/connection/link-outages.ts'
import { publishQueue } from '../../node/connection/publish-queue.ts'
import { againWhenNetworkComesUp, networkWatch, reconnectWaitMs } from '../../node/connection/reconnect-wait.ts'
import { replacedLinks } from '../../node/connection/replaced-links.ts'
import { readNetworkState } from '../kernel/network-changes.ts'
import { type MqttLink, type MqttLinkSettings, openLink } from './mqtt-link.ts'
import { isReadyIn, understood } from './received-messages.ts'

export type MqttControlPlaneNeeds = {
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Asked when we end: why, and for how long. */
  readonly leave?: () => Promise<Leave>
}

export type MqttControlPlaneSettings = {
  readonly nodeName: string
  /** `mqtts://HOST:PORT`. */
  readonly mqttUrl: string
  /** PEM. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
  readonly agentVersion: string
  readonly bootID: string
  /** What the broker's certificate is judged by where our clock may be wrong. */
  readonly knownTime?: KnownTime
  /** The broker finds us dead after one and a half times this. */
  readonly keepaliveSeconds?: number
  /** Reported to the controller, which expects a heartbeat four times within it. */
  readonly leaseDurationSeconds?: number
  /** Events other than warnings are not published. */
  readonly warningsOnly?: boolean
  /** Where the machine's files are. */
  readonly root?: string
}

export interface MqttControlPlane extends ControlPlane {
  /** From now on: the present connection, made with others, is given up for a new one. */
  use(credentials: NodeCredentials): void
  /** Connects, for ever, until `signal` aborts; then takes leave of the controller. */
  run(listener: ControlPlaneListener, signal: AbortSignal): Promise<void>
}

/** A link must last this long before its loss counts as a first failure: else two agents of one name would race. */
const stableMs = 10_000
const goodbyeMs = 2_000
const leaveMs = 1_500
const mostEvents = 100

export function mqttControlPlane(needs: MqttControlPlaneNeeds, settings: MqttControlPlaneSettings): MqttControlPlane {
  const { clock, random, log } = needs
  const { nodeName, bootID, agentVersion } = settings
  const topicOf = (kind: Exclude<NodeTopic['kind'], 'pod'>) => topicName({ kind, node: nodeName })
  const podTopic = (uid: string) => topicName({ kind: 'pod', node: nodeName, uid })
  const topics = {
    connection: topicOf('connection'),
    lease: topicOf('lease'),
    status: topicOf('status'),
    events: topicOf('events'),
    stats: topicOf('stats'),
    desired: topicOf('desired'),
    calls: topicOf('calls'),
    controller: topicName({ kind: 'controller' }),
  }
  let credentials: NodeCredentials = settings
  /** Ends the present connection for a new one. */
  let reconnect: () => void = () => undefined
  const outages = linkOutages({
    url: settings.mqttUrl,
    certificate: () => credentials.certificate,
    nowMs: () => judgingMs(settings.knownTime, clock.wallMs()),
    clock,
    log,
  })
  const replaced = replacedLinks({ clock, log })
  const outbox = publishQueue({ mostQueued: mostEvents, acknowledged: (topic, body) => logPosted(topic, body) })
  const { root = '/' } = settings
  const network = networkWatch({ clock, random, network: () => readNetworkState(root) })
  const terms = controllerTerms(settings.leaseDurationSeconds ?? usualLeaseDurationSeconds)
  const leases = leaseMessages(topics.lease, terms)
  let link: MqttLink | undefined
  let guard: LinkGuard | undefined
  let epoch: string | undefined
  let posted = false
  let leaving: Leave | undefined

  const logPosted = (topic: string, body: string) => {
    if (posted || topic !== topics.status) return
    posted = true
    log.info('Node status posted', { node: nodeName, ready: isReadyIn(body) })
  }

  const { leaseDurationSeconds } = settings
  const connection = (message: Pick<ConnectionMessage, 'state' | 'reason' | 'expectedBackSeconds'>): string =>
    JSON.stringify({
      ...message,
      bootID,
      agentVersion,
      ...(leaseDurationSeconds !== undefined && { leaseDurationSeconds }),
    } satisfies ConnectionMessage)

  const renewLease = () => {
    const on = link
    if (on === undefined) return false
    // Also where nothing more can be written: that is a reason to check what was written before.
    guard?.check()
    if (!on.canSend()) return false
    const { topic, body, confirmed } = leases.next(outbox.digest())
    if (confirmed !== 'QoS 1') on.send(topic, body)
    if (confirmed !== 'no') {
      const answered = confirmed === 'ping' ? on.ping() : on.publish(topic, body, { qos: 1, retain: false })
      answered.catch((cause) => on.abandon(new Error('The controller does not answer', { cause })))
    }
    return true
  }

  const hear = (listener: ControlPlaneListener, topic: string, body: string, isRetained: boolean) => {
    if (topic === topics.desired) {
      const message = understood(decodeDesired(parseJson(body)), topic, log)
      if (message !== undefined) listener.desired(message)
    } else if (topic === topics.calls) {
      const message = understood(decode(CallMessageSchema, parseJson(body)), topic, log)
      if (message === undefined) return
      if (message.call === 'stats') return listener.stats?.(message)
      log.debug('Asked to report everything', { reason: message.reason })
      outbox.republish()
    } else if (topic === topics.controller) {
      const message = understood(decode(ControllerMessageSchema, parseJson(body)), topic, log)
      if (message === undefined || message.state === 'lost') return
      leases.received(message)
      terms.received(message)
      // Behind a broker of its own a controller may start anew while our link stands.
      if (epoch !== undefined && epoch !== message.epoch) outbox.republish()
      epoch = message.epoch
      listener.controllerTime?.(Date.parse(message.time), !isRetained)
      if (message.store !== undefined) listener.store?.(message.store)
      if (message.trust !== undefined) listener.trust?.(message.trust)
    }
  }

  const say = (on: MqttLink, state: 'online' | 'goodbye', leave: Partial<Leave> = {}) =>
    on.publish(topics.connection, connection({ state, ...leave }), { qos: 1, retain: true })

  const greet = async (on: MqttLink, signal: AbortSignal) => {
    await say(on, 'online')
    if (leaving !== undefined) await say(on, 'goodbye', leaving)
    await on.subscribe([topics.desired, topics.calls, topics.controller])
    if (signal.aborted) return
    link = on
    guard = linkGuard({ clock, network, sentData: on.sentData })
    outages.over()
    outbox.open(on)
    renewLease()
    const dropped = outbox.dropped()
    if (dropped > 0) log.warn('Events were dropped while there was no connection', { dropped })
  }

  /** Why we end is found out at the end only; who cannot is not kept from ending. */
  const lastLeave = async (): Promise<Leave> => {
    const otherwise = leaving ?? { reason: 'agent-stopped' }
    if (needs.leave === undefined) return otherwise
    return await within(leaveMs, 'Nobody knows why we stop', needs.leave()).catch(() => otherwise)
  }

  const publishLeave = async (on: MqttLink) => {
    const leave = await lastLeave()
    try {
      await within(goodbyeMs, 'The broker did not take our goodbye', say(on, 'goodbye', leave))
      log.info('Took leave', leave)
    } catch (error) {
      log.warn('Could not say goodbye', { error })
    }
    await on.close()
  }

  /** What `ended` gives; a link that is found dead is abandoned first. */
  const whileGuarded = <T>(on: MqttLink, ended: Promise<T>): Promise<T> =>
    withOwnSignal(undefined, async (own) => {
      void guard?.run(own.signal).then((dead) => dead && on.abandon(dead))
      try {
        return await ended
      } finally {
        own.abort()
      }
    })

  /** One connection, from the first try to its end: gives what ended it. Rejects when it did not come to stand. */
  const live = async (listener: ControlPlaneListener, signal: AbortSignal): Promise<Error | 'renewed'> => {
    const will = { topic: topics.connection, body: connection({ state: 'lost' }) }
    const renewed = new Promise<'renewed'>((resolve) => {
      reconnect = () => resolve('renewed')
    })
    leases.opened()
    terms.opened()
    const { keepaliveSeconds } = terms
    const open = (own: AbortSignal) =>
      openLink(
        linkSettings({ keepaliveSeconds, ...settings, ...credentials }, will),
        (...heard) => hear(listener, ...heard),
        own,
      )
    const on = await againWhenNetworkComesUp(network, open, signal)
    try {
      const ended = await unlessAborted(
        greet(on, signal).then(() => whileGuarded(on, Promise.race([on.ended, renewed]))),
        signal,
      )
      if (ended === 'renewed') await on.close()
      if (ended !== undefined) return ended
    } catch (cause) {
      on.abandon(new Error('Not greeted', { cause }))
      throw cause
    }
    await publishLeave(on)
    return new Error('Stopped')
  }

  return {
    get connected() {
      return link !== undefined
    },
    get settled() {
      return outbox.isIdle()
    },
    async publishLeave(leave) {
      leaving = leave
      if (link === undefined) return
      const said = leave === undefined ? say(link, 'online') : say(link, 'goodbye', leave)
      await within(goodbyeMs, 'The broker did not take our goodbye', said).catch((error) =>
        log.warn('Could not say goodbye', { error }),
      )
      // No sign of life yet: that one comes in its turn, once the node is Ready again. Who is back and is not would lose its pods.
    },
    reportNodeStatus: (status) => outbox.publishState(topics.status, JSON.stringify(status)),
    confirmNodeStatus() {
      if (link === undefined || !leases.canConfirmStatus || !outbox.isAcknowledged(topics.status)) return false
      leases.confirmStatus()
      return true
    },
    reportPod: (pod) => outbox.publishState(podTopic(pod.uid), JSON.stringify(pod)),
    reportPodGone: (uid) => outbox.publishState(podTopic(uid), ''),
    reportEvent(event) {
      if (!settings.warningsOnly || event.type === 'Warning') outbox.enqueue(topics.events, JSON.stringify(event))
    },
    sendStats: (message) => void link?.send(topics.stats, JSON.stringify(message)),
    reportEverything: () => outbox.republish(),
    get leaseDurationSeconds() {
      return terms.leaseDurationSeconds
    },
    renewLease,
    use(next) {
      credentials = next
      reconnect()
    },
    async run(listener, signal) {
      let failures = 0
      while (!signal.aborted) {
        const triedMs = clock.monotonicMs()
        try {
          const ended = await live(listener, signal)
          if (ended === 'renewed') {
            failures = 0
            continue
          }
          const lastedMs = clock.monotonicMs() - triedMs
          failures = lastedMs >= stableMs ? 0 : failures + 1
          if (!signal.aborted) {
            outages.lost(ended, lastedMs)
            replaced.lost({ lastedMs, epoch })
          }
        } catch (error) {
          failures++
          terms.failed(error)
          if (!signal.aborted) outages.failed(error)
        } finally {
          link = undefined
          guard = undefined
          epoch = undefined
          outbox.closed()
        }
        if (await network.cameUpWithin(reconnectWaitMs(failures, terms.graceMs, random), signal)) failures = 0
      }
    },
  }
}

function linkSettings(
  settings: MqttControlPlaneSettings & { readonly keepaliveSeconds: number },
  will: MqttLinkSettings['will'],
): MqttLinkSettings {
  const { hostname, port } = new URL(settings.mqttUrl)
  const { ca, certificate, key, nodeName, keepaliveSeconds, knownTime, root } = settings
  // Addresses of IPv6 stand in brackets in a URL only.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return {
    host,
    port: Number(port || 8883),
    clientId: nodeName,
    ca,
    certificate,
    key,
    knownTime,
    keepaliveSeconds,
    ...(root !== undefined && { root }),
    will,
  }
}
