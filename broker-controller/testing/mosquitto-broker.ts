/** A `Broker` on a separate MQTT server such as Mosquitto: what an external broker needs is this one file. For tests: it does not reconnect. */
import mqtt from 'mqtt'
import { isFleetTopic, parseTopic, type Topic, topicName, topicRules } from '../../api/topics.ts'
import type { Broker, NodeListener } from '../broker/broker.ts'

export type MosquittoBrokerSettings = {
  readonly host: string
  readonly port: number
  /** PEM. The server gives the owner of this certificate the rights of the controller. */
  readonly tls: { readonly ca: string; readonly certificate: string; readonly key: string }
}

/** Topics on which nodes publish. */
const filters = ['connection', 'lease', 'status', 'events', 'stats', 'pods/+'].map((end) => `bramble/v1/nodes/+/${end}`)

export interface MosquittoBroker extends Broker {
  /** Resolves when the server has accepted the subscriptions. Messages of nodes are passed to `listener` from then on. */
  listen(listener: NodeListener): Promise<void>
}

/**
 * Resolves when the server has accepted the connection. The server must grant each node only its own topics: this client receives
 * topics, not certificates.
 */
export async function openMosquittoBroker({
  host,
  port,
  tls: { ca, certificate, key },
}: MosquittoBrokerSettings): Promise<MosquittoBroker> {
  const client = await mqtt.connectAsync({
    ...{ protocol: 'mqtts', host, port, ca, cert: certificate, key },
    ...{ protocolVersion: 4, clientId: 'bramble-controller', clean: true, reconnectPeriod: 0 },
  })
  let listener: NodeListener | undefined
  client.on('message', (name, payload, { retain }) => {
    const topic = parseTopic(name)
    // A retained message was published at an unknown time: nodes publish their state again for a new epoch.
    if (retain || topic === undefined || isFleetTopic(topic)) return
    if (topicRules[topic.kind].from === 'node') {
      void listener?.message({ node: topic.node, topic, body: payload.toString() })
    }
  })
  const send = async (topic: Topic, body: string, retain: boolean) => {
    await client.publishAsync(topicName(topic), body, { qos: topicRules[topic.kind].qos, retain })
  }
  return {
    identifiesSenders: false,
    async listen(to) {
      listener = to
      await client.subscribeAsync(filters, { qos: 1 })
    },
    publish: (topic, body, { retain = topicRules[topic.kind].retain } = {}) => send(topic, body, retain),
    withdraw: (topic) => send(topic, '', true),
    async close() {
      listener = undefined
      await client.endAsync()
    },
  }
}
