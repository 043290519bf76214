import { test } from 'tap'
import type { Service, ServiceSpec } from '../../api/network/service.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { eventRecorder } from '../store/event-recorder.ts'
import { memoryStore } from '../store/memory-store.ts'
import { allocationProblems, serviceAllocationController } from './service-allocation-controller.ts'

const cidrs = { serviceCIDR: '10.96.0.0/12', ipv6: { serviceCIDR: 'fd00:10:96::/112' } }

function aService(name: string, spec: ServiceSpec, namespace = 'default'): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec }
}

const found = async (services: readonly Service[], of: Parameters<typeof allocationProblems>[1] = cidrs) =>
  (await allocationProblems(services, of)).map(
    ({ service: { metadata }, reason, message }) => `${metadata.namespace}/${metadata.name} ${reason}: ${message}`,
  )

test('an address that two Services have is named at the later one by namespace and name', async (t) => {
  const [a, b] = [
    aService('b', { clusterIPs: ['10.96.0.7'] }, 'other'),
    aService('z', { clusterIP: '10.96.0.7' }, 'default'),
  ]
  const expected =
    'other/b ClusterIPAlreadyAllocated: Cluster IP [IPv4]:10.96.0.7 was assigned to multiple services; please recreate service'
  t.same(await found([a, b]), [expected])
  t.same(await found([b, a]), [expected], 'in any order of the list')
})

test('an IPv6 address is the same one however it is written', async (t) => {
  const services = [
    aService('a', { clusterIPs: ['10.96.0.7', 'fd00:10:96::7'] }),
    aService('b', { clusterIPs: ['10.96.0.8', 'fd00:10:96:0::0007'] }),
  ]
  t.same(await found(services), [
    'default/b ClusterIPAlreadyAllocated: Cluster IP [IPv6]:fd00:10:96:0::0007 was assigned to multiple services; please recreate service',
  ])
})

test('an address outside of the range is named, and not one of a family without a range', async (t) => {
  const services = [aService('a', { clusterIPs: ['10.43.0.7', 'fd00:10:43::7'] })]
  t.same(await found(services), [
    'default/a ClusterIPOutOfRange: Cluster IP [IPv4]:10.43.0.7 is not within the service CIDR 10.96.0.0/12; please recreate service',
    'default/a ClusterIPOutOfRange: Cluster IP [IPv6]:fd00:10:43::7 is not within the service CIDR fd00:10:96::/112; please recreate service',
  ])
  t.match(await found(services, { serviceCIDR: '10.43.0.0/16' }), [], 'no IPv6 range')
})

test('a node port that two Services have is named once, also as that of health checks', async (t) => {
  const port = (nodePort: number, protocol = 'TCP') => ({ port: 53, nodePort, protocol })
  t.same(
    await found([aService('a', { ports: [port(30_053), port(30_053, 'UDP')] })]),
    [],
    'both protocols of one Service',
  )
  t.same(
    await found([
      aService('a', { ports: [port(30_053)] }),
      aService('b', { ports: [port(0)], healthCheckNodePort: 30_053 }),
    ]),
    ['default/b PortAlreadyAllocated: Port 30053 was assigned to multiple services; please recreate service'],
  )
})

test('headless Services, those without addresses, and those with their own have no problem', async (t) => {
  const services = [
    aService('a', { clusterIP: 'None', clusterIPs: ['None'] }),
    aService('b', { clusterIP: 'None', clusterIPs: ['None'] }),
    aService('c', { type: 'ExternalName', externalName: 'example.com' }),
    aService('d', { clusterIP: '' }),
    aService('e', { clusterIP: '' }),
    aService('f', { clusterIPs: ['10.96.0.1'], ports: [{ port: 80, nodePort: 30_080 }] }),
  ]
  t.same(await found(services), [])
})

test('the loop records an Event for each, again every three minutes, and changes no Service', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  for (const name of ['a', 'b']) await store.create('services', aService(name, { clusterIPs: ['10.96.0.7'] }))
  const before = await store.list('services')
  const stop = new AbortController()
  const needs = { store, events: eventRecorder({ store, clock }), clock, log: quietLog(t) }
  const running = serviceAllocationController(needs, cidrs).run(stop.signal)
  await clock.advance(3 * 60_000)
  stop.abort()
  await running
  const { items } = await store.list('events')
  t.match(items, [{ involvedObject: { kind: 'Service', name: 'b' }, reason: 'ClusterIPAlreadyAllocated', count: 2 }])
  t.same((await store.list('services')).items, before.items)
})
