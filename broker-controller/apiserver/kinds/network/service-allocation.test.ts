import { test } from 'tap'
import type { Service, ServicePort, ServiceSpec } from '../../../../api/network/service.ts'
import { growth, linearAtMost } from '../../../../daemon/testing/growth.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { serviceNetwork } from '../../handlers/service-network.ts'
import { withAllocations } from './service-allocation.ts'

const web = (spec: ServiceSpec = {}, name = 'web', namespace = 'default'): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { type: 'ClusterIP', ports: [{ port: 80, protocol: 'TCP' }], ...spec },
})
const [small, both] = [
  serviceNetwork('192.0.2.0/29'),
  serviceNetwork('192.0.2.0/24', { serviceCIDR: '2001:db8::/120' }),
]

type World = { readonly services?: readonly Service[]; readonly network?: typeof both; readonly at?: number }

/** The spec with what it gets; `at`: where in a range the search for a free place begins, from 0 to 1. */
const allocated = (service: Service, { services = [], network = both, at = 0 }: World = {}, old?: Service) =>
  withAllocations(service, old, { services, ranges: network.ranges, random: () => at }).spec
const refusal = (service: Service, world: World = {}) => {
  try {
    allocated(service, world)
  } catch (error) {
    return error instanceof Error ? error.message.replace('Service "web" is invalid: ', '') : error
  }
  return undefined
}

test('a Service gets a free address of each of its families', async (t) => {
  const dual = { ipFamilyPolicy: 'RequireDualStack' }
  t.match(allocated(web()), { clusterIP: '192.0.2.17', clusterIPs: ['192.0.2.17'], ipFamilies: ['IPv4'] })
  t.match(allocated(web({ ipFamilies: ['IPv6'] })), { clusterIP: '2001:db8::11', clusterIPs: ['2001:db8::11'] })
  t.same(allocated(web(dual))?.clusterIPs, ['192.0.2.17', '2001:db8::11'])
  t.same(allocated(web({ ...dual, ipFamilies: ['IPv6', 'IPv4'] }))?.clusterIPs, ['2001:db8::11', '192.0.2.17'])
  const taken = web({ clusterIPs: ['192.0.2.17', '2001:db8::11'] }, 'other')
  t.same(allocated(web(dual), { services: [taken] })?.clusterIPs, ['192.0.2.18', '2001:db8::12'])
  t.same(allocated(web(dual), { at: 0.9999 })?.clusterIPs, ['192.0.2.254', '2001:db8::ff'])
  const last = web({ clusterIPs: ['192.0.2.254', '2001:db8::ff'] }, 'other')
  t.same(allocated(web(dual), { services: [last], at: 0.9999 })?.clusterIPs, ['192.0.2.17', '2001:db8::11'])
})

test('a Service without an address gets none', async (t) => {
  const named = { type: 'ExternalName', externalName: 'db.example.com' }
  t.equal(allocated(web(named))?.clusterIP, undefined)
  t.same(allocated(web({ clusterIP: 'None', clusterIPs: ['None'] }))?.clusterIPs, ['None'])
})

test('an address that a Service asks for is free and in the range', async (t) => {
  const asked = (ip: string, services: readonly Service[] = []) =>
    refusal(web({ clusterIP: ip, clusterIPs: [ip] }), { services })
  const failed = (ip: string, because: string) =>
    `spec.clusterIPs: Invalid value: ["${ip}"]: failed to allocate IP ${ip}: ${because}`
  const outside = (ip: string, range: string) =>
    failed(ip, `the provided IP (${ip}) is not in the valid range. The range of valid IPs is ${range}`)
  for (const ip of ['192.0.2.2', '192.0.2.254', '2001:db8::1', '2001:db8::ff']) t.equal(asked(ip), undefined, ip)
  for (const ip of ['192.0.2.0', '192.0.2.255', '192.0.3.1']) t.equal(asked(ip), outside(ip, '192.0.2.0/24'))
  for (const ip of ['2001:db8::', '2001:db8::100']) t.equal(asked(ip), outside(ip, '2001:db8::/120'))
  const others = [web({ clusterIPs: ['192.0.2.9', '2001:db8::a'] }, 'web', 'other')]
  for (const ip of ['192.0.2.9', '2001:db8::a', '2001:DB8:0::A'])
    t.equal(asked(ip, others), failed(ip, 'provided IP is already allocated'))
})

test('the first address of the first family is that of the Service kubernetes', async (t) => {
  const ip = '192.0.2.1'
  t.match(refusal(web({ clusterIP: ip, clusterIPs: [ip] })), /provided IP is already allocated/)
  t.equal(allocated(web({ clusterIP: ip, clusterIPs: [ip] }, 'kubernetes'))?.clusterIP, ip)
  t.match(refusal(web({ clusterIP: ip, clusterIPs: [ip] }, 'kubernetes', 'other')), /provided IP is already allocated/)
})

test('a Service keeps the addresses that it had, also where the range was changed since', async (t) => {
  const spec = { clusterIP: '198.51.100.7', clusterIPs: ['198.51.100.7'], ipFamilyPolicy: 'SingleStack' }
  const old = web(spec)
  t.match(allocated(old, { services: [old] }, old), spec)
  const dual = web({ ...spec, ipFamilyPolicy: 'PreferDualStack' })
  t.same(allocated(dual, { services: [old] }, old)?.clusterIPs, ['198.51.100.7', '2001:db8::11'])
})

test('the lower part of a range is left to Services that ask for an address', async (t) => {
  // The first three are the examples of the Kubernetes documentation (Service ClusterIP allocation).
  const firstFree: readonly (readonly [range: string, first: string, last: string])[] = [
    ['10.96.0.0/24', '10.96.0.17', '10.96.0.254'],
    ['10.96.0.0/20', '10.96.1.1', '10.96.15.254'],
    ['10.96.0.0/16', '10.96.1.1', '10.96.255.254'],
    ['10.96.0.0/21', '10.96.0.129', '10.96.7.254'],
    ['10.96.0.0/27', '10.96.0.17', '10.96.0.30'],
    ['10.96.0.0/28', '10.96.0.2', '10.96.0.14'],
  ]
  for (const [range, first, last] of firstFree) {
    const network = serviceNetwork(range)
    t.equal(allocated(web(), { network })?.clusterIP, first, range)
    t.equal(allocated(web(), { network, at: 0.999999 })?.clusterIP, last, range)
  }
  const ipv6: readonly (readonly [range: string, first: string])[] = [
    ['2001:db8::/112', '2001:db8::101'],
    ['2001:db8::/117', '2001:db8::81'],
    ['2001:db8::/124', '2001:db8::1'],
  ]
  for (const [serviceCIDR, first] of ipv6) {
    const network = serviceNetwork('192.0.2.0/24', { serviceCIDR })
    t.equal(allocated(web({ ipFamilies: ['IPv6'] }), { network })?.clusterIP, first, serviceCIDR)
  }
})

test('a full range has no address for a Service', async (t) => {
  const services = [2, 3, 4, 5, 6].map((place) => web({ clusterIPs: [`192.0.2.${place}`] }, `web-${place}`))
  const world = { network: small, at: 0.5 }
  t.equal(allocated(web(), { ...world, services: services.slice(1) })?.clusterIP, '192.0.2.2')
  t.equal(
    refusal(web(), { ...world, services }),
    'spec.clusterIPs: Invalid value: []: failed to allocate IP: range is full',
  )
})

const ofPorts = (...ports: ServicePort[]) => web({ type: 'NodePort', ports })
const nodePorts = (service: Service, world?: World) => allocated(service, world)?.ports?.map(({ nodePort }) => nodePort)

test('every type gets the node ports that it needs', async (t) => {
  const port = { port: 80, protocol: 'TCP' }
  const has = (spec: ServiceSpec) => nodePorts(web(spec))?.map((nodePort) => nodePort !== undefined)
  t.same(has({}), [false])
  t.same(has({ type: 'NodePort' }), [true])
  t.same(has({ type: 'LoadBalancer' }), [true])
  t.same(has({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: true }), [true])
  t.same(has({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }), [false])
  const named = { ...port, nodePort: 30_080 }
  const only = { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, ports: [named, { ...port, port: 81 }] }
  t.same(nodePorts(web(only)), [30_080, undefined])
})

test('a node port that a Service asks for is free and in the range', async (t) => {
  const asked = (nodePort: number, services: readonly Service[] = []) =>
    refusal(ofPorts({ port: 80 }, { port: 81, nodePort }), { services })
  const failed = (port: number, because: string) => `spec.ports[1].nodePort: Invalid value: ${port}: ${because}`
  const outside = 'provided port is not in the valid range. The range of valid ports is 30000-32767'
  for (const port of [30_000, 32_767]) t.equal(asked(port), undefined)
  for (const port of [29_999, 32_768]) t.equal(asked(port), failed(port, outside))
  const others = [
    web({ type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] }, 'other'),
    web({ type: 'LoadBalancer', ports: [], healthCheckNodePort: 30_001 }, 'checked'),
  ]
  for (const port of [30_080, 30_001]) t.equal(asked(port, others), failed(port, 'provided port is already allocated'))
  const own = ofPorts({ port: 80, nodePort: 30_080 })
  t.same(nodePorts(own, { services: [own] }), [30_080], 'it is replaced')
})

test('both protocols of a port have one node port', async (t) => {
  const [tcp, udp] = [
    { name: 'tcp', port: 53, protocol: 'TCP' },
    { name: 'udp', port: 53, protocol: 'UDP' },
  ]
  const [first, second] = nodePorts(ofPorts(tcp, udp)) ?? []
  t.equal(first, second)
  t.same(nodePorts(ofPorts(tcp, { ...udp, nodePort: 30_053 })), [30_053, 30_053])
  t.same(nodePorts(ofPorts({ ...tcp, nodePort: 30_053 }, udp)), [30_053, 30_053])
  t.same(nodePorts(ofPorts({ ...tcp, nodePort: 30_053 }, { ...udp, nodePort: 30_054 })), [30_053, 30_054])
  const [other] = nodePorts(ofPorts({ ...tcp, port: 54 }, { ...udp, nodePort: 30_053 })) ?? []
  t.not(other, 30_053, 'another port')
})

test('a load balancer of local endpoints has a port for health checks', async (t) => {
  const spec = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }
  const checked = (more: ServiceSpec) => allocated(web({ ...spec, ...more }))?.healthCheckNodePort
  t.equal(checked({ healthCheckNodePort: 30_001 }), 30_001)
  t.equal(checked({ externalTrafficPolicy: 'Cluster' }), undefined)
  t.equal(checked({ type: 'NodePort' }), undefined)
  t.equal(typeof checked({ allocateLoadBalancerNodePorts: false }), 'number')
  t.equal(
    refusal(web({ ...spec, healthCheckNodePort: 80 })),
    'spec.healthCheckNodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
  )
  t.equal(
    refusal(web({ ...spec, healthCheckNodePort: 30_080, ports: [{ port: 80, nodePort: 30_080 }] })),
    'spec.healthCheckNodePort: Invalid value: 30080: provided port is already allocated',
    'a port of its own',
  )
})

test('the lower node ports are left to Services that ask for one', async (t) => {
  t.same(nodePorts(ofPorts({ port: 80 })), [30_086])
  t.same(nodePorts(ofPorts({ port: 80 }), { at: 0.99999 }), [32_767])
  const upper = Array.from({ length: 2_682 }, (_, place) => ({ port: place + 1, nodePort: 30_086 + place }))
  const services = [web({ type: 'NodePort', ports: upper }, 'other')]
  t.same(nodePorts(ofPorts({ port: 80 }), { services }), [30_000], 'until there are no others')
})

test('a full range of node ports has none for a Service', async (t) => {
  const all = Array.from({ length: 2_767 }, (_, place) => ({ port: place + 1, nodePort: 30_000 + place }))
  const services = [web({ type: 'NodePort', ports: all }, 'other')]
  t.same(nodePorts(ofPorts({ port: 80 }), { services }), [32_767])
  t.equal(
    refusal(ofPorts({ port: 80 }, { port: 81 }), { services }),
    'spec.ports: Invalid value: []: failed to allocate a nodePort: range is full',
  )
})

test('the node ports of a Service with hundreds of ports cost as much as their number', (t) => {
  const risen = growth(250, (count) => {
    const ports = Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: 1 + index, protocol: 'TCP' }))
    const facts = { services: [], ranges: serviceNetwork().ranges, random: seededRandom(7) }
    const service = web({ type: 'NodePort', ports })
    // An update, since a new Service has a share of them only.
    return () => withAllocations(service, service, facts)
  })
  t.ok(risen < linearAtMost, `eight times as many: ${risen.toFixed(1)} times the CPU time`)
  t.end()
})

test('a Service of an earlier version keeps more node ports, and gets no further ones', async (t) => {
  const ports = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1, nodePort: 30_000 + index }))
  const service = (count: number) => web({ type: 'NodePort', ports: ports(count) })
  const facts = { services: [service(300)], ranges: serviceNetwork().ranges, random: Math.random }
  t.equal(withAllocations(service(300), service(300), facts).spec?.ports?.length, 300)
  t.throws(() => withAllocations(service(301), service(300), facts), /Too many: 301/)
})
