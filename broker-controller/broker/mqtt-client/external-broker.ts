/**
 * The `Broker` on an external MQTT server such as Mosquitto: the controller is a client with a certificate of its own. It connects
 * again with back-off, and then publishes again all that is to be retained: the server may have lost it.
 */

import { type NodeTopic, type Topic, topicName, topicRules } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { gauge, one } from '../../../daemon/prometheus-text.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { Broker, NodeListener } from '../broker.ts'
import { brokerCounters } from '../mqtt/broker-metrics.ts'
import { filtersFrom } from '../topic-filters.ts'
import { inboundMessages } from './inbound-messages.ts'
import { type MqttClientSettings, openMqttClient } from './mqtt-client.ts'
import { nodeShare } from './node-share.ts'
import { retainedMessages } from './retained-messages.ts'
import { serverLink } from './server-link.ts'
import { ungreetedNodes } from './ungreeted-nodes.ts'

export type ExternalBrokerNeeds = {
  /** The present certificate of the controller: read at each connection. Throws where there is none. */
  readonly tls: () => MqttClientSettings['tls']
  readonly host: string
  readonly port: number
  /** One for all controllers: the connection of the one that leads replaces that of the one before. */
  readonly clientId: string
  /** The last will on `controller`. */
  readonly lastWill: () => string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly registry: MetricsRegistry
}

export interface ExternalBroker extends Broker, Loop {
  /** From now on messages of nodes are passed to `listener`. */
  listen(listener: NodeListener): void
  readonly isConnected: boolean
  /** There is a connection, and the server has not been silent for a while: what nodes publish arrives. */
  readonly isAnswering: boolean
  /** While paused, there is no connection. */
  pause(isPaused: boolean): void
  /** Connects again, with the present certificate. */
  renew(): void
  /** Withdraws what is retained on the topic, unless this controller has published it. */
  withdrawForeign(topic: Topic): Promise<void>
  /** Topics of nodes that had a retained message at the server when this controller connected. */
  foundRetained(): readonly NodeTopic[]
  /** Called after each connection, when all that is to be retained was published. */
  onConnected(listener: () => void): void
}

/** Registers its metrics: once for a registry. */
export function openExternalBroker(needs: ExternalBrokerNeeds): ExternalBroker {
  const { clock, host, port } = needs
  const log = limitLog(needs.log, clock)
  const retained = retainedMessages(log)
  const metrics = externalMetrics(needs.registry, () => server.client !== undefined)
  const ungreeted = ungreetedNodes(clock, (nodes) => {
    const topics = [...nodes.map((node) => ({ kind: 'desired', node }) as const), { kind: 'controller' } as const]
    for (const topic of topics) void publishRetained(topic)
  })
  const inbound = inboundMessages({ share: nodeShare(), metrics, log, ungreeted })
  const connectedListeners: (() => void)[] = []
  let isClosed = false

  const gotSession = () =>
    log.warn('sessions', 'The MQTT server allows TLS session resumption', {
      ...{ host, port },
      because: 'the holder of a session needs no key, and is not refused when its certificate was revoked',
      remedy: "set OPENSSL_CONF of the server as 'Mosquitto in front' in control-plane.md, and restart it",
    })
  const server = serverLink({
    async open(signal) {
      const will = { topic: topicName({ kind: 'controller' }), body: needs.lastWill() }
      inbound.reset()
      return openMqttClient(
        { host, port, clientId: needs.clientId, tls: needs.tls(), will, gotSession },
        inbound.received,
        clock,
        signal,
      )
    },
    subscribe: (client) => client.subscribe(filtersFrom('node', '+')),
    async connected(client) {
      await retained.publishAll(client)
      log.info('connected', 'Connected to the MQTT server', { host, port })
      for (const listener of connectedListeners) listener()
    },
    failed: (error) => log.warn('lost', 'No connection to the MQTT server', { host, port, error }),
    isWanted: () => !isClosed,
    clock,
    random: needs.random,
  })

  /** Where there is no connection, it is published with the next one. */
  const publishRetained = async (topic: Topic): Promise<void> => {
    const { client } = server
    if (client !== undefined) await retained.publish(client, topicName(topic)).catch(() => undefined)
  }

  const publishOnce = async (topic: Topic, body: string): Promise<void> => {
    if (server.client === undefined) throw new Error('There is no connection to the MQTT server')
    await server.client.publish({ topic: topicName(topic), body, qos: topicRules[topic.kind].qos, retain: false })
  }

  return {
    name: 'external-broker',
    identifiesSenders: false,
    async run(signal) {
      await server.run(signal)
      log.close()
    },
    listen: inbound.listen,
    get isConnected() {
      return server.client !== undefined
    },
    get isAnswering() {
      return server.client?.isAnswering() ?? false
    },
    pause: server.pause,
    renew: () => server.interrupt('The controller has another certificate'),
    foundRetained: inbound.foundRetained,
    onConnected: (listener) => void connectedListeners.push(listener),
    async publish(topic, body, { retain = topicRules[topic.kind].retain, retained: inPlace } = {}) {
      if (retain) {
        if (topic.kind === 'desired') ungreeted.created(topic.node)
        retained.keep(topic, inPlace?.() ?? body)
        // Where it is lost, the node asks for what the retained message refers to.
        if (inPlace !== undefined) await publishOnce(topic, body).catch(() => undefined)
        return publishRetained(topic)
      }
      await publishOnce(topic, body)
    },
    async withdraw(topic) {
      if (topic.kind === 'desired') ungreeted.deleted(topic.node)
      retained.keep(topic, '')
      await publishRetained(topic)
    },
    async withdrawForeign(topic) {
      if (retained.has(topic)) return
      retained.keep(topic, '')
      await publishRetained(topic)
    },
    async close() {
      isClosed = true
      inbound.listen(undefined)
      await server.client?.close()
    },
  }
}

function externalMetrics(registry: MetricsRegistry, isConnected: () => boolean) {
  registry.add(() => [
    gauge(
      'bramble_broker_external_connected',
      'Whether the controller is connected to the external MQTT server: 1, or not: 0',
      one(isConnected() ? 1 : 0),
    ),
  ])
  return brokerCounters(registry)
}
