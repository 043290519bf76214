/** What a node can reach on a real Mosquitto with the files that a controller writes, and what the controller does without it. */
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt'
import { type Test, test } from 'tap'
import { noMosquitto as skip } from '../agent/testing/mosquitto.ts'
import { type NodeTopic, type Topic, topicName } from '../api/topics.ts'
import type { NodeMessage } from '../broker-controller/broker/broker.ts'
import { openExternalBroker } from '../broker-controller/broker/mqtt-client/external-broker.ts'
import { openAuthority } from '../certs/authority.ts'
import { issueAdmin, issueNode, issueServer } from '../certs/issue.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import { metricsRegistry } from '../daemon/metrics-registry.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { temporaryFolder } from './support/fleet.ts'
import { type MosquittoFleet, mosquittoFleet } from './support/mosquitto-server.ts'
import { eventually } from './support/wait.ts'

type Keys = { readonly ca: string; readonly certificate: string; readonly key: string }

/** A controller at this server, and the messages that it takes in. */
async function controller(t: Test, server: MosquittoFleet) {
  const received: NodeMessage[] = []
  const broker = openExternalBroker({
    ...{ host: 'localhost', port: server.port, clientId: 'system:bramble-controller', tls: () => server.controller },
    lastWill: () => '{"state":"lost"}',
    ...{ clock, random: () => 0.1, log: quietLog(t), registry: metricsRegistry() },
  })
  broker.listen({
    message: (message) => {
      received.push(message)
      return undefined
    },
    connected: () => undefined,
    disconnected: () => undefined,
  })
  const stopping = new AbortController()
  const running = broker.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  await eventually('the controller is connected', () => broker.isConnected, { everyMs: 20 })
  return { broker, received }
}

async function connected(t: Test, port: number, { ca, certificate, key }: Keys, options: IClientOptions = {}) {
  const client = await mqtt.connectAsync({
    ...{ protocol: 'mqtts', host: 'localhost', port, ca, cert: certificate, key },
    ...{ protocolVersion: 4, clean: true, keepalive: 60, reconnectPeriod: 0, connectTimeout: 30_000 },
    ...options,
  })
  client.on('error', () => undefined)
  t.teardown(() => client.end(true))
  return client
}

/** What the client receives from now on. */
function messagesOf(client: MqttClient): string[] {
  const messages: string[] = []
  client.on('message', (topic, body) => void messages.push(`${topic} ${body}`))
  return messages
}

const nodeKinds = ['connection', 'lease', 'status', 'events', 'stats', 'contents', 'desired', 'calls'] as const
const topicsOf = (node: string): readonly NodeTopic[] => [
  ...nodeKinds.map((kind) => ({ kind, node })),
  { kind: 'pod', node, uid: 'u1' },
]

test('a node reaches no topic of another by publishing, subscribing or its last will', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a', 'pi-b'])
  const { broker, received } = await controller(t, server)
  const evil = await connected(t, server.port, server.keysOf('pi-a'), { clientId: 'pi-a' })
  const seen = messagesOf(evil)
  const victim = await connected(t, server.port, server.keysOf('pi-b'), { clientId: 'pi-b' })
  const victimSeen = messagesOf(victim)
  await victim.subscribeAsync([`bramble/v1/nodes/pi-b/desired`, `bramble/v1/nodes/pi-b/calls`, 'bramble/v1/controller'])

  const forbidden: readonly Topic[] = [
    ...topicsOf('pi-b'),
    { kind: 'desired', node: 'pi-a' },
    { kind: 'calls', node: 'pi-a' },
    { kind: 'controller' },
    { kind: 'network' },
    { kind: 'services', shard: 3 },
  ]
  for (const topic of forbidden) {
    for (const retain of [true, false]) await evil.publishAsync(topicName(topic), 'forged', { qos: 1, retain })
  }
  for (const filter of [
    ...['#', 'bramble/v1/#', 'bramble/v1/nodes/+/desired', 'bramble/v1/nodes/pi-b/#', '+/+/+/+/+', '$SYS/#'],
    ...['bramble/v1/nodes/pi-b/desired', 'bramble/v1/nodes/pi-b/calls', '$share/all/bramble/v1/nodes/pi-b/desired'],
  ]) {
    await evil.subscribeAsync(filter, { qos: 1 }).catch(() => undefined)
  }
  const will = {
    topic: 'bramble/v1/nodes/pi-b/connection',
    payload: Buffer.from('forged'),
    qos: 1,
    retain: true,
  } as const
  const dying = await connected(t, server.port, server.keysOf('pi-a'), { clientId: 'other', will })
  dying.stream.destroy()

  await broker.publish({ kind: 'desired', node: 'pi-b' }, 'secret')
  await broker.publish({ kind: 'calls', node: 'pi-b' }, 'call')
  await victim.publishAsync('bramble/v1/nodes/pi-b/status', 'own', { qos: 1, retain: true })
  await broker.publish({ kind: 'controller' }, 'end')
  await eventually('the messages of the victim', () => victimSeen.some((one) => one.endsWith(' end')))
  await eventually('its status', () => received.some(({ body }) => body === 'own'))
  t.same(victimSeen, [
    'bramble/v1/nodes/pi-b/desired secret',
    'bramble/v1/nodes/pi-b/calls call',
    'bramble/v1/controller end',
  ])
  t.same(
    seen.filter((one) => !one.startsWith('bramble/v1/controller ')),
    [],
  )
  t.same(
    received.filter(({ body }) => body === 'forged'),
    [],
  )
  const later = await connected(t, server.port, server.keysOf('pi-b'), { clientId: 'pi-b' })
  const kept = messagesOf(later)
  await later.subscribeAsync(topicsOf('pi-b').map(topicName))
  await later.subscribeAsync('bramble/v1/controller')
  await eventually('what is retained', () => kept.some((one) => one.endsWith(' end')))
  t.notOk(
    kept.some((one) => one.endsWith('forged')),
    'nothing forged is retained',
  )
})

test('a client ID cannot be stolen: the certificate decides which connection is replaced', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a', 'pi-b'])
  const { broker } = await controller(t, server)
  const victim = await connected(t, server.port, server.keysOf('pi-b'), { clientId: 'pi-b' })
  let closed = 0
  victim.on('close', () => closed++)
  const evilKeys = server.keysOf('pi-a')
  let last = await connected(t, server.port, evilKeys, { clientId: 'pi-a' })
  for (const clientId of ['pi-b', 'system:node:pi-b', 'system:bramble-controller', 'bramble-controller']) {
    const before = last
    const replaced = new Promise<void>((resolve) => before.once('close', () => resolve()))
    last = await connected(t, server.port, evilKeys, { clientId, username: 'system:node:pi-b', password: 'x' })
    await replaced
  }
  await victim.publishAsync('bramble/v1/nodes/pi-b/status', 'there', { qos: 1 })
  t.equal(closed, 0, 'the victim is connected')
  t.equal(broker.isConnected, true, 'and so is the controller')
})

test('only certificates of the fleet for clients are accepted, and that of a person has no rights', {
  skip,
}, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a'])
  const { received } = await controller(t, server)
  const nowMs = Date.now()
  const other = await openAuthority(join(await temporaryFolder(t), 'other'), nowMs)
  const { authority } = server
  const ca = authority.certificate
  const refused: Readonly<Record<string, Keys>> = {
    'of another authority': { ca, ...issueNode(other, { nodeName: 'pi-a', nowMs }) },
    'one that has ended': { ca, ...issueNode(authority, { nodeName: 'pi-a', nowMs, lifeMs: -1_000 }) },
    'that of a server': { ca, ...issueServer(authority, { names: ['system:node:pi-a'.replaceAll(':', '.')], nowMs }) },
  }
  for (const [what, keys] of Object.entries(refused)) {
    await t.rejects(connected(t, server.port, keys, { clientId: 'pi-a' }), what)
  }
  await t.rejects(
    mqtt.connectAsync({
      protocol: 'mqtts',
      host: 'localhost',
      port: server.port,
      ca,
      reconnectPeriod: 0,
      connectTimeout: 30_000,
    }),
    'none',
  )
  const person = await connected(t, server.port, { ca, ...issueAdmin(authority, { nowMs }) })
  const seen = messagesOf(person)
  await person.subscribeAsync('#', { qos: 1 })
  await person.publishAsync('bramble/v1/nodes/pi-a/status', 'forged', { qos: 1 })
  const node = await connected(t, server.port, server.keysOf('pi-a'), { clientId: 'pi-a' })
  await node.publishAsync('bramble/v1/nodes/pi-a/status', 'own', { qos: 1, retain: true })
  await eventually('the status of the node', () => received.length > 0)
  t.same(
    received.map(({ body }) => body),
    ['own'],
  )
  t.same(seen, [])
})

test('after a reload other nodes have rights, and no connection is lost', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a', 'pi-b'])
  const { broker, received } = await controller(t, server)
  const stays = await connected(t, server.port, server.keysOf('pi-a'))
  const revokedKeys = server.keysOf('pi-b')
  const loses = await connected(t, server.port, revokedKeys)
  const early = await connected(t, server.port, server.keysOf('pi-c'))
  let closed = 0
  for (const client of [stays, loses, early]) client.on('close', () => closed++)
  const lease = (node: string) => `bramble/v1/nodes/${node}/lease`
  await early.subscribeAsync(['bramble/v1/nodes/pi-c/desired', 'bramble/v1/controller'], { qos: 1 })
  const seen = messagesOf(early)
  await broker.publish({ kind: 'desired', node: 'pi-c' }, 'pods')
  await broker.publish({ kind: 'controller' }, 'online')
  await early.publishAsync(lease('pi-c'), 'too early', { qos: 1 })

  const serial = new X509Certificate(revokedKeys.certificate).serialNumber
  await server.write(['pi-a', 'pi-c'], [{ serial, revokedMs: Date.now() }])
  server.reload()
  await eventually('the new node has rights', async () => {
    await early.publishAsync(lease('pi-c'), 'beat', { qos: 1 })
    return received.some(({ body }) => body === 'beat')
  })
  await eventually('it receives what was published before it had rights', () => seen.length >= 2)
  t.same([...new Set(seen)].sort(), ['bramble/v1/controller online', 'bramble/v1/nodes/pi-c/desired pods'])
  await loses.publishAsync(lease('pi-b'), 'revoked', { qos: 1 })
  await stays.publishAsync(lease('pi-a'), 'last', { qos: 1 })
  await eventually('the last heartbeat', () => received.some(({ body }) => body === 'last'))
  t.notOk(received.some(({ body }) => body === 'revoked' || body === 'too early'))
  t.equal(closed, 0)
  t.equal(broker.isConnected, true)
  await t.rejects(connected(t, server.port, revokedKeys), 'the revoked certificate')
  await connected(t, server.port, server.keysOf('pi-a'))
})

test('a machine that joins under the name of a deleted node receives its pods, however early it connects', {
  skip,
}, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a', 'pi-b'])
  const { broker, received } = await controller(t, server)
  await broker.publish({ kind: 'controller' }, 'online')
  await broker.publish({ kind: 'desired', node: 'pi-a' }, 'of before')
  const before = await connected(t, server.port, server.keysOf('pi-a'))
  await before.publishAsync('bramble/v1/nodes/pi-a/connection', 'online', { qos: 1, retain: true })
  await eventually('it is connected', () => received.length > 0)
  await before.endAsync()
  await broker.withdraw({ kind: 'desired', node: 'pi-a' })
  await server.write(['pi-b'])
  server.reload()
  const next = await connected(t, server.port, server.keysOf('pi-a'))
  const beat = () => next.publishAsync('bramble/v1/nodes/pi-a/lease', 'beat', { qos: 1 })
  const seen = messagesOf(next)
  await next.subscribeAsync(['bramble/v1/nodes/pi-a/desired', 'bramble/v1/controller'], { qos: 1 })
  await broker.publish({ kind: 'desired', node: 'pi-a' }, 'pods')
  await server.write(['pi-a', 'pi-b'])
  server.reload()
  await eventually('its pods', async () => {
    await beat()
    return seen.includes('bramble/v1/nodes/pi-a/desired pods') && seen.includes('bramble/v1/controller online')
  })
})

test('the server is killed: everything is retained again soon after it is back', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a'])
  const { broker, received } = await controller(t, server)
  await broker.publish({ kind: 'desired', node: 'pi-a' }, 'before')
  await broker.publish({ kind: 'network' }, 'withdrawn')
  const node = await connected(t, server.port, server.keysOf('pi-a'))
  await node.publishAsync('bramble/v1/nodes/pi-a/lease', 'live', { qos: 1, retain: true })
  await node.publishAsync('bramble/v1/nodes/pi-a/connection', 'online', { qos: 1, retain: true })
  await eventually('both messages', () => received.length === 2)
  await server.kill()
  await eventually('the controller has no connection', () => !broker.isConnected, { everyMs: 20 })
  await broker.publish({ kind: 'desired', node: 'pi-a' }, 'meanwhile')
  await broker.withdraw({ kind: 'network' })
  await t.rejects(broker.publish({ kind: 'calls', node: 'pi-a' }, 'report'), /no connection to the MQTT server/)
  await server.start()
  const backMs = performance.now()
  const again = await connected(t, server.port, server.keysOf('pi-a'))
  const seen = messagesOf(again)
  await again.subscribeAsync(['bramble/v1/nodes/pi-a/desired', 'bramble/v1/network'], { qos: 1 })
  await eventually('desired', () => seen.some((one) => one.endsWith(' meanwhile')), { everyMs: 20 })
  t.comment(`retained again ${Math.round(performance.now() - backMs)} ms after the start of the server`)
  const withdrawal = 'bramble/v1/network '
  t.same(
    seen.filter((one) => one !== withdrawal),
    ['bramble/v1/nodes/pi-a/desired meanwhile'],
    'a withdrawal may arrive after the subscription, as an empty message',
  )
})

test('a server that is frozen is noticed before a node is judged by its silence', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a'])
  const { broker } = await controller(t, server)
  await eventually('it answers', () => broker.isAnswering, { everyMs: 20 })
  server.freeze(true)
  await eventually('it does not answer', () => !broker.isAnswering, { everyMs: 20 })
  t.equal(broker.isConnected, true, 'the connection is open')
  server.freeze(false)
  await eventually('it answers again', () => broker.isAnswering, { everyMs: 20 })
})

test('what was retained before is not a heartbeat, and shows how the node was connected', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a'])
  const node = await connected(t, server.port, server.keysOf('pi-a'))
  for (const kind of ['lease', 'status', 'connection', 'pods/u1'])
    await node.publishAsync(`bramble/v1/nodes/pi-a/${kind}`, kind, { qos: 1, retain: true })
  const { broker, received } = await controller(t, server)
  await node.publishAsync('bramble/v1/nodes/pi-a/events', 'end', { qos: 1 })
  await eventually('the end', () => received.some(({ body }) => body === 'end'))
  t.match(received, [
    { body: 'connection', isRetained: true },
    { topic: { kind: 'events' }, body: 'end' },
  ])
  t.same(
    broker
      .foundRetained()
      .map(({ kind }) => kind)
      .sort(),
    ['connection', 'lease', 'pod', 'status'],
  )
})

test('a controller that leads replaces the connection of the one before', { skip }, async (t) => {
  const server = await mosquittoFleet(t, ['pi-a'])
  const first = await controller(t, server)
  await first.broker.publish({ kind: 'desired', node: 'pi-a' }, 'of the first')
  const second = await controller(t, server)
  await eventually('the first has no connection', () => !first.broker.isConnected, { everyMs: 5 })
  first.broker.pause(true)
  await eventually('the second is connected', () => second.broker.isConnected)
  await second.broker.publish({ kind: 'desired', node: 'pi-a' }, 'of the second')
  await first.broker.publish({ kind: 'desired', node: 'pi-a' }, 'late')
  const node = await connected(t, server.port, server.keysOf('pi-a'))
  const seen = messagesOf(node)
  await node.subscribeAsync('bramble/v1/nodes/pi-a/desired', { qos: 1 })
  await eventually('desired', () => seen.length > 0)
  t.same(seen, ['bramble/v1/nodes/pi-a/desired of the second'])
})
