import { PassThrough } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { type Test, test } from 'tap'
import { type Topic, topicName } from '../../../api/topics.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type BrokerConnection, brokerConnections } from './broker-connections.ts'
import { defaultBrokerLimits } from './broker-limits.ts'
import { brokerCounters } from './broker-metrics.ts'
import { type ClientHandlerNeeds, clientHandler } from './client-handler.ts'
import type { MqttSessionHandler } from './mqtt-session.ts'

/** Counts what is looked at in it: each lookup and each entry of an iteration. */
class CountedMap<V> extends Map<string, V> {
  looks = 0
  override get(key: string) {
    this.looks += 1
    return super.get(key)
  }
  override has(key: string) {
    this.looks += 1
    return super.has(key)
  }
  override forEach(act: (value: V, key: string, map: Map<string, V>) => void) {
    for (const [key, value] of this.entries()) act(value, key, this)
  }
  override entries() {
    return this.#counted(super.entries())
  }
  override keys() {
    return this.#counted(super.keys())
  }
  override values() {
    return this.#counted(super.values())
  }
  override [Symbol.iterator]() {
    return this.entries()
  }
  *#counted<T>(entries: Iterable<T>): Generator<T, undefined> {
    for (const entry of entries) {
      this.looks += 1
      yield entry
    }
    return undefined
  }
}

type Client = { readonly received: string[]; readonly handler: MqttSessionHandler }

/** Clients of a broker that retains these messages. */
function aBroker(t: Test, retained: ClientHandlerNeeds['retained']) {
  const connections = brokerConnections()
  const log = limitLog(quietLog(t), fakeClock())
  const socket = new TLSSocket(new PassThrough())
  t.teardown(() => {
    socket.destroy()
    log.close()
  })
  const needs: ClientHandlerNeeds = {
    ...{ log, connections, retained, limits: defaultBrokerLimits, metrics: brokerCounters(metricsRegistry()) },
    refuse: (_peer, _what, { reason }) => new Error(reason),
    listener: () => undefined,
  }
  const client = (node: string): Client => {
    const received: string[] = []
    const connection: BrokerConnection = {
      session: {
        ...{ socket, checkTimes: () => undefined, close: () => undefined, end: async () => undefined },
        publish: (topic, body) => void received.push(`${topic} ${body}`),
      },
      peer: { user: `system:node:${node}`, node, notBeforeMs: 0, peer: { address: '192.0.2.1' } },
      will: undefined,
      accepted: () => undefined,
    }
    connections.add(connection)
    return { received, handler: clientHandler(() => connection, needs) }
  }
  return { client }
}

const desired = (node: string): Topic => ({ kind: 'desired', node })
const fleet: readonly Topic[] = [{ kind: 'controller' }, { kind: 'network' }]

/** A SUBSCRIBE with these filters. */
function subscribe({ handler }: Client, topics: readonly Topic[]): void {
  handler.subscribed(topics.map(topicName).filter((name) => handler.subscribe(name)))
}

test('a client receives what is retained on the topics that it may read, made again where it is not kept', async (t) => {
  const retained = new Map<string, string | (() => string)>([
    [topicName(desired('pi-1')), () => 'made again'],
    [topicName(desired('pi-2')), 'of another'],
    [topicName({ kind: 'controller' }), 'online'],
  ])
  const client = aBroker(t, retained).client('pi-1')
  subscribe(client, [desired('pi-1'), desired('pi-2'), ...fleet])
  t.same(client.received, [`${topicName(desired('pi-1'))} made again`, `${topicName({ kind: 'controller' })} online`])
})

test('the cost of the subscriptions of a fleet grows with its nodes, not with their square', async (t) => {
  const looksFor = (nodes: number) => {
    const names = Array.from({ length: nodes }, (_, number) => `pi-${number}`)
    const retained = new CountedMap<string>()
    for (const topic of [...fleet, ...names.map(desired)]) retained.set(topicName(topic), topic.kind)
    const { client } = aBroker(t, retained)
    const clients = names.map(client)
    for (const [number, name] of names.entries()) {
      const one = clients[number]
      if (one !== undefined) subscribe(one, [desired(name), ...fleet])
    }
    t.equal(clients.filter(({ received }) => received.length === 3).length, nodes)
    return retained.looks
  }
  const looks = looksFor(1_000)
  t.ok(looks >= 3_000, 'what is counted is the work')
  t.ok(looksFor(2_000) <= 2.2 * looks, 'twice the nodes')
})
