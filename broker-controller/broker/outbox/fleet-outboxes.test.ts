import { type Test, test } from 'tap'
import { decode } from '../../../api/decode.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { type ServicesMessage, ServicesMessageSchema, serviceShardOf } from '../../../api/network/service-endpoints.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { type Topic, topicName } from '../../../api/topics.ts'
import { runLoops } from '../../../daemon/run.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { networkOutbox } from './network-outbox.ts'
import { servicesOutbox } from './services-outbox.ts'

const facts = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', clusterDomain: 'cluster.local' }

/** `nodeCount`: of the fleet, by which the pace of Services goes. */
async function outboxes(t: Test, more: Pick<NetworkMessage, 'wireguard' | 'ipv6'> = {}, nodeCount?: number) {
  const clock = fakeClock()
  const log = quietLog(t)
  const store = memoryStore({ clock })
  const published: { topic: string; body: unknown }[] = []
  let refusals = 0
  const broker = {
    publish: async (topic: Topic, body: string) => {
      if (refusals > 0) {
        refusals -= 1
        throw new Error('refused')
      }
      published.push({ topic: topicName(topic), body: JSON.parse(body) })
    },
  }
  const needs = { store, broker, clock, log, epoch: 'e' }
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  return {
    store,
    clock,
    log,
    take: () => published.splice(0),
    refuse: (times: number) => {
      refusals = times
    },
    async start() {
      const network = networkOutbox(needs, { ...facts, ...more })
      const counted = nodeCount === undefined ? network.nodeCount : () => nodeCount
      const services = servicesOutbox({ ...needs, ipv6: more.ipv6 !== undefined, nodeCount: counted })
      void runLoops([network, services], stop.signal, log)
      await clock.advance(50)
    },
  }
}

const aNodeWith = (name: string, podCIDR: string, address: string) => {
  const node = aNode({ name, spec: { podCIDR }, status: { addresses: [{ type: 'InternalIP', address }] } })
  const { resourceVersion: _, ...metadata } = node.metadata
  return { ...node, metadata }
}

const aService = (name: string, clusterIP: string) =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name },
    spec: { clusterIP, clusterIPs: [clusterIP], ports: [{ port: 80 }] },
  }) as const

const aSlice = (service: string, ...addresses: readonly string[]) =>
  ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'default', name: `${service}-1`, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ports: [{ port: 8080 }],
  }) as const

const shardTopic = (name: string) => `bramble/v1/services/${serviceShardOf('default', name)}`

test('the whole of each message is published at the start, also where there are no Services', async (t) => {
  const { store, start, take } = await outboxes(t)
  await store.create('nodes', aNodeWith('pi-2', '10.244.2.0/24', '192.168.1.2'))
  await store.create('nodes', aNodeWith('pi-1', '10.244.1.0/24', '192.168.1.1'))
  await store.create('services', aService('web', '10.96.0.9'))
  await store.create('endpointslices', aSlice('web', '10.244.1.5'))
  await start()
  const messages = take()
  t.equal(messages.length, 17)
  const network = messages.find(({ topic }) => topic === 'bramble/v1/network')?.body as NetworkMessage
  t.match(network, { epoch: 'e', version: 1, ...facts })
  t.same(
    network.nodes.map(({ name }) => name),
    ['pi-1', 'pi-2'],
  )
  const services = messages.find(({ topic }) => topic === shardTopic('web'))?.body
  const decoded = decode(ServicesMessageSchema, services)
  t.match(decoded, { ok: true, unknownFields: [] })
  t.match(services, { epoch: 'e', services: [{ name: 'web', endpoints: [{ addresses: [{ ip: '10.244.1.5' }] }] }] })
})

test('messages have IPv6 ranges and addresses only in a fleet with both families', async (t) => {
  const ipv6 = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
  const dual = aNodeWith('pi-1', '10.244.1.0/24', '192.168.1.1')
  const spec = { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd00:10:244:1::/64'] }
  for (const more of [{}, { ipv6 }]) {
    const { store, start, take } = await outboxes(t, more)
    await store.create('nodes', { ...dual, spec })
    const web = aService('web', '10.96.0.9')
    const both = { clusterIPs: ['10.96.0.9', 'fd00:10:96::9'], ipFamilies: ['IPv4', 'IPv6'] }
    await store.create('services', { ...web, spec: { ...web.spec, ...both } })
    await start()
    const messages = take()
    const network = messages.find(({ topic }) => topic === 'bramble/v1/network')?.body
    const nodes = [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.1', segment: '192.168.1.0/24' }]
    const peers = nodes.map((node) => ({ ...node, ipv6: { podCIDR: 'fd00:10:244:1::/64' } }))
    t.same(network, { epoch: 'e', version: 1, ...facts, ...more, nodes: 'ipv6' in more ? peers : nodes })
    const services = messages.find(({ topic }) => topic === shardTopic('web'))?.body as ServicesMessage
    t.same(services.services[0]?.ipv6?.clusterIPs, 'ipv6' in more ? ['fd00:10:96::9'] : undefined)
  }
})

test('a change is published once, on its topic, and what nodes do not receive is not', async (t) => {
  const { store, clock, start, take } = await outboxes(t)
  const node = await store.create('nodes', aNodeWith('pi-1', '10.244.1.0/24', '192.168.1.1'))
  const service = await store.create('services', aService('web', '10.96.0.9'))
  await start()
  const before = take()
  await store.updateStatus('nodes', { ...node, status: { ...node.status, nodeInfo: { bootID: 'b' } } } as typeof node)
  const labelled = { ...service, metadata: { ...service.metadata, labels: { a: 'b' } } }
  const updated = await store.update('services', labelled)
  await clock.advance(10_000)
  t.same(take(), [], 'no field of the messages has changed')
  await store.create('endpointslices', aSlice('web', '10.244.1.5'))
  await clock.advance(150)
  t.same(take(), [])
  await clock.advance(100)
  const [message, ...others] = take()
  t.equal(message?.topic, shardTopic('web'))
  t.same(others, [])
  const last = message?.body as ServicesMessage
  const highest = Math.max(...before.map(({ body }) => (body as ServicesMessage).version))
  t.ok(last.version > highest)
  await store.delete('services', { namespace: 'default', name: updated.metadata.name })
  await clock.advance(2_000)
  t.match(take(), [{ topic: shardTopic('web'), body: { services: [] } }])
})

/** The number of messages for 20 s of changes of one Service. */
async function messagesOfChurn(t: Test, nodeCount?: number): Promise<number> {
  const { store, clock, start, take } = await outboxes(t, {}, nodeCount)
  await store.create('nodes', aNodeWith('pi-1', '10.244.1.0/24', '192.168.1.5'))
  await store.create('services', aService('web', '10.96.0.9'))
  let slice = await store.create('endpointslices', aSlice('web', '10.244.1.1'))
  await start()
  take()
  for (let change = 0; change < 200; change++) {
    const endpoints = [{ addresses: [`10.244.2.${change + 1}`] }]
    slice = await store.update('endpointslices', { ...slice, endpoints })
    await clock.advance(100)
  }
  const count = take().length
  await clock.advance(2_000)
  t.match(take().at(-1)?.body, { services: [{ endpoints: [{ addresses: [{ ip: '10.244.2.200' }] }] }] })
  return count
}

test('lasting churn is published every 0.7 s in a small fleet, and every two seconds in a large one', async (t) => {
  const [small, large] = [await messagesOfChurn(t), await messagesOfChurn(t, 100_000)]
  t.ok(small >= 20 && small <= 30, `small: ${small}`)
  t.ok(large >= 8 && large <= 14, `large: ${large}`)
})

test('a message that the broker does not take is published again', async (t) => {
  const { store, clock, start, take, refuse } = await outboxes(t)
  await start()
  take()
  refuse(2)
  await store.create('services', aService('web', '10.96.0.9'))
  await clock.advance(5_000)
  t.match(take(), [{ topic: shardTopic('web'), body: { services: [{ name: 'web' }] } }])
})

test('Services that make a message too long for nodes are left out, and the others are published', async (t) => {
  const { store, clock, log, start, take } = await outboxes(t)
  const others = Array.from({ length: 2_000 }, (_, index) => `large-${index}`)
  const large = others.filter((name) => shardTopic(name) === shardTopic('web')).slice(0, 4)
  const externalIPs = Array.from(
    { length: 45_000 },
    (_, index) => `11.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
  )
  const spec = { clusterIP: 'None', ports: [{ port: 80 }], externalIPs }
  for (const name of large) await store.create('services', { ...aService(name, ''), spec })
  await store.create('services', aService('web', '10.96.0.9'))
  await start()
  const published = take().find(({ topic }) => topic === shardTopic('web'))?.body as ServicesMessage
  const names = published.services.map(({ name }) => name)
  t.equal(large.length, 4)
  t.equal(names.length, 4, 'one of the large ones is left out')
  t.ok(names.includes('web'))
  t.same(log.messages('warn'), ['Services do not fit into their message to nodes: the longest are left out'])
  for (const name of large) await store.delete('services', { namespace: 'default', name })
  await clock.advance(5_000)
  t.match(take().at(-1)?.body, { services: [{ name: 'web' }] })
})

test('of two nodes with one WireGuard key the second is published without it', async (t) => {
  const { store, clock, log, start, take } = await outboxes(t, { wireguard: { port: 51_871 } })
  const keyed = (
    name: string,
    range: string,
    address: string,
    key = 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=',
  ) => {
    const node = aNodeWith(name, range, address)
    return { ...node, metadata: { ...node.metadata, annotations: { 'bramble.dev/wireguard-public-key': key } } }
  }
  await store.create('nodes', keyed('pi-2', '10.244.2.0/24', '192.168.1.2'))
  await start()
  const other = 'TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0='
  const thief = await store.create('nodes', keyed('pi-1', '10.244.1.0/24', '192.168.1.1', other))
  await clock.advance(10_000)
  take()
  const stolen = keyed('pi-1', '10.244.1.0/24', '192.168.1.1').metadata.annotations
  await store.update('nodes', { ...thief, metadata: { ...thief.metadata, annotations: stolen } })
  await clock.advance(10_000)
  const message = take().at(-1)?.body as NetworkMessage
  t.same(message.wireguard, { port: 51_871 })
  t.same(
    message.nodes.map(({ wireguardKey }) => wireguardKey !== undefined),
    [false, true],
  )
  t.same(log.messages('warn'), ['A node has the WireGuard key of another node'])
})
