import { test } from 'tap'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { decodeServices } from './received-services.ts'

const service: ServiceState = {
  namespace: 'default',
  name: 'web',
  type: 'ClusterIP',
  clusterIPs: ['10.96.0.9'],
  externalIPs: ['192.0.2.1'],
  loadBalancerIPs: ['192.0.2.2'],
  sourceRanges: ['192.0.2.0/24'],
  externalName: 'DB.example.',
  ports: [{ name: 'http', port: 80, protocol: 'TCP', nodePort: 30_080 }],
  affinitySeconds: 86_400,
  internalTrafficPolicy: 'Cluster',
  externalTrafficPolicy: 'Cluster',
  healthCheckNodePort: 30_999,
  endpoints: [
    {
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      addresses: [
        { ip: '10.244.1.5', hostname: 'web-0', pod: 'web-0', ready: true, serving: true, terminating: false },
      ],
    },
  ],
}
const [set] = service.endpoints
const [address] = set?.addresses ?? []

const decodedServices = (...services: readonly unknown[]) => {
  const decoded = decodeServices({ epoch: 'e', version: 1, services })
  if (!decoded.ok) throw new Error('not decoded')
  return decoded.value
}

test('a Service with an invalid value does not affect the others', async (t) => {
  t.same(decodedServices(service), { message: { epoch: 'e', version: 1, services: [service] }, problems: [] })
  const withAddress = (over: object) => ({ ...service, endpoints: [{ ...set, addresses: [{ ...address, ...over }] }] })
  const ofPort = (over: object) => ({ ...service, ports: [{ port: 80, protocol: 'TCP', ...over }] })
  const bad: readonly (readonly [unknown, string | RegExp])[] = [
    [{ ...service, name: 'a.b' }, 'a name is not valid'],
    [{ ...service, namespace: '../x' }, 'a name is not valid'],
    [{ ...service, namespace: '' }, 'a name is not valid'],
    [{ ...service, clusterIPs: ['fd00::1'] }, 'an address is not an IPv4 address'],
    [{ ...service, externalIPs: ['10.96.0.9 }; flush ruleset'] }, 'an address is not an IPv4 address'],
    [{ ...service, loadBalancerIPs: ['many'] }, 'an address is not an IPv4 address'],
    [{ ...service, loadBalancerNode: '*' }, 'the node of the load balancer is not valid'],
    [{ ...service, sourceRanges: ['10.0.0.1/8'] }, 'a source range is not an IPv4 range'],
    [{ ...service, sourceRanges: ['2001:db8::/32'] }, 'a source range is not an IPv4 range'],
    [{ ...service, externalName: 'a b' }, 'the external name is not valid'],
    [{ ...service, externalName: 'db.example..' }, 'the external name is not valid'],
    [ofPort({ port: 0 }), 'a port is not valid'],
    [ofPort({ port: 65_536 }), 'a port is not valid'],
    [ofPort({ protocol: 'SCTP' }), /^ports\[0\]\.protocol/],
    [ofPort({ nodePort: -1 }), 'a port is not valid'],
    [ofPort({ nodePort: 0 }), 'a port is not valid'],
    [ofPort({ name: 'a"b' }), 'the name of a port is not valid'],
    [{ ...service, affinitySeconds: 0 }, 'affinitySeconds is not valid'],
    [{ ...service, affinitySeconds: 86_401 }, 'affinitySeconds is not valid'],
    [{ ...service, healthCheckNodePort: 70_000 }, 'a port is not valid'],
    [{ ...service, type: 'Later' }, /^type/],
    [{ ...service, endpoints: [{ ...set, ports: [{ port: 70_000, protocol: 'TCP' }] }] }, 'a port is not valid'],
    [
      { ...service, endpoints: [{ ...set, ports: [{ name: 'A', port: 80, protocol: 'TCP' }] }] },
      'the name of a port is not valid',
    ],
    [withAddress({ ip: '10.244.1' }), 'an endpoint is not valid'],
    [withAddress({ ip: '2001:db8::5' }), 'an endpoint is not valid'],
    [withAddress({ hostname: 'a.b' }), 'an endpoint is not valid'],
    [withAddress({ pod: 'A_B' }), 'an endpoint is not valid'],
    [withAddress({ node: 'a b' }), 'an endpoint is not valid'],
    [withAddress({ zone: 'x'.repeat(254) }), 'an endpoint is not valid'],
    [withAddress({ zones: ['x'.repeat(254)] }), 'an endpoint is not valid'],
    [{ name: 'web' }, /^namespace/],
    [7, /./],
  ]
  for (const [one, reason] of bad) {
    const { message, problems } = decodedServices(one, service)
    t.same(message.services, [service], JSON.stringify(one).slice(0, 200))
    const [, named = ''] = /^Service "[^"]*": (.*)$/s.exec(problems.join()) ?? []
    if (typeof reason === 'string') t.equal(named, reason)
    else t.match(named, reason)
  }
})

const endpointsOf = (...ips: readonly string[]) => [{ ports: [], addresses: ips.map((ip) => ({ ...address, ip })) }]

test('the part of a Service in IPv6 has IPv6 addresses only', async (t) => {
  const part = {
    ...{ clusterIPs: ['fd00:10:96::9'], externalIPs: ['2001:db8::1'], loadBalancerIPs: ['2001:db8::2'] },
    ...{ sourceRanges: ['2001:db8::/32', '::/0'], endpoints: endpointsOf('fd00:10:244:1::5') },
  }
  t.same(decodedServices({ ...service, ipv6: part }).message.services, [{ ...service, ipv6: part }])
  const bad = [
    { ...part, clusterIPs: ['10.96.0.9'] },
    { ...part, clusterIPs: ['FD00:10:96::9'] },
    { ...part, externalIPs: ['::ffff:192.0.2.1'] },
    { ...part, loadBalancerIPs: ['fe80::1%eth0'] },
    { ...part, sourceRanges: ['10.0.0.0/8'] },
    { ...part, sourceRanges: ['2001:db8::1/32'] },
    { ...part, endpoints: endpointsOf('10.244.1.5') },
    { ...part, endpoints: [{ ports: [{ port: 70_000, protocol: 'TCP' }], addresses: [] }] },
    { clusterIPs: [] },
    7,
  ]
  for (const ipv6 of bad) {
    const { message, problems } = decodedServices({ ...service, ipv6 }, service)
    t.same(message.services, [service], JSON.stringify(ipv6))
    t.match(problems, [/^Service "default\/web": ./])
  }
})

test('a Service whose lists multiply to more than a node can hold does not affect the others', async (t) => {
  const many = <T>(count: number, make: (index: number) => T) =>
    Array.from({ length: count }, (_, index) => make(index))
  const ports = many(100, (index) => ({ port: index + 1, protocol: 'TCP' }))
  const ips = (count: number) => many(count, (index) => `10.1.${Math.floor(index / 256)}.${index % 256}`)
  const byAddresses = (count: number) => ({ ...service, ports, externalIPs: ips(count) })
  const byEndpoints = (count: number) => ({
    ...service,
    ports,
    endpoints: [{ ...set, addresses: ips(count).map((ip) => ({ ...address, ip })) }],
  })
  for (const one of [byAddresses(99), byEndpoints(1001)]) {
    const { message, problems } = decodedServices(one, service)
    t.same(message.services, [service])
    t.match(problems, [/^Service "[^"]+": it has too many /])
  }
  const more = { clusterIPs: ['fd00::1'], endpoints: endpointsOf('fd00::2') }
  for (const one of [byAddresses(98), byEndpoints(1000)]) {
    t.match(decodedServices({ ...one, externalIPs: [...(one.externalIPs ?? [])], ipv6: more }).problems, [/too many/])
  }
  for (const one of [byAddresses(98), byEndpoints(1000)]) t.same(decodedServices(one).problems, [])
})

test('what is not a Services message is refused', async (t) => {
  for (const input of [
    undefined,
    null,
    [],
    {},
    { epoch: 'e', version: 'x', services: [] },
    { epoch: 'e', version: 1 },
  ]) {
    t.match(decodeServices(input), { ok: false })
  }
})

test('a Service may have the highest and lowest values, and none of those it may leave out', async (t) => {
  const { namespace, name, type, internalTrafficPolicy, externalTrafficPolicy } = service
  const least = { namespace, name, type, internalTrafficPolicy, externalTrafficPolicy }
  const good = [
    { ...least, clusterIPs: [], ports: [], endpoints: [] },
    { ...service, affinitySeconds: 1, ports: [1, 65_535].map((port) => ({ port, protocol: 'UDP', nodePort: port })) },
    { ...service, loadBalancerNode: 'pi-1.example.com', sourceRanges: ['0.0.0.0/0', '192.0.2.7/32'] },
    {
      ...service,
      endpoints: [{ ...set, addresses: [{ ...address, node: 'pi-1', zone: 'x'.repeat(253), zones: ['a', 'b'] }] }],
    },
  ]
  t.match(decodedServices(...good), { message: { services: good }, problems: [] })
})

test('a Service that cannot be decoded has three problems of it at most', async (t) => {
  const { problems } = decodedServices({ namespace: 'default', name: 'web' })
  t.equal(problems[0]?.split(', ').length, 3)
  t.match(problems, [/^Service "default\/web": type[^,]*, clusterIPs[^,]*, ports/])
})
