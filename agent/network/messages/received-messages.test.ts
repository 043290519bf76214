import { test } from 'tap'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { decodeNetwork } from './received-network.ts'
import { decodeServices } from './received-services.ts'

const facts = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
}
const peer = { name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.5', segment: '192.168.1.0/24' }
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

test('a message of the network is taken as it is, and a node with a value that is none is left out', async (t) => {
  const decoded = decodeNetwork({ ...facts, nodes: [peer] })
  t.match(decoded, { ok: true, value: { message: { ...facts, nodes: [peer] }, problems: [] } })
  const others = [
    { ...peer, name: 'Pi 2' },
    { ...peer, podCIDR: '10.244.1.5/24' },
    { ...peer, address: '192.168.1.5; flush ruleset' },
    { ...peer, address: 'fd00::5' },
    { ...peer, segment: 'x'.repeat(254) },
    { ...peer, zone: 'x'.repeat(254) },
    { ...peer, wireguardKey: `${'A'.repeat(42)};=` },
    { ...peer, probePort: 0 },
    { ...peer, probePort: 65_536 },
    { ...peer, wireguardEndpoint: '--help:1' },
    { ...peer, wireguardEndpoint: '$(id):1' },
  ]
  for (const other of others) {
    t.match(decodeNetwork({ ...facts, nodes: [other, peer] }), {
      ok: true,
      value: { message: { nodes: [peer] }, problems: [/^node "/] },
    })
  }
})

test('a message of the network whose own values are none is refused', async (t) => {
  for (const field of ['clusterCIDR', 'serviceCIDR', 'clusterDomain', 'nodes', 'epoch', 'version']) {
    t.match(decodeNetwork({ ...facts, nodes: [peer], [field]: { a: 1 } }), { ok: false }, field)
  }
  t.match(decodeNetwork({ ...facts, nodes: [], wireguard: { port: 65_536 } }), { ok: false })
  t.match(decodeNetwork({ ...facts, nodes: [], wireguard: { port: 51_871 } }), { ok: true })
  for (const field of ['clusterCIDR', 'serviceCIDR', 'clusterDomain']) {
    t.match(decodeNetwork({ ...facts, nodes: [], [field]: '-' }), { ok: false, problems: [{ field }] })
  }
  for (const input of [undefined, null, 1, 'text', []]) t.match(decodeNetwork(input), { ok: false })
})

test('a Service with a value that is none does not affect the others', async (t) => {
  t.same(decodedServices(service), { message: { epoch: 'e', version: 1, services: [service] }, problems: [] })
  const withAddress = (over: object) => ({ ...service, endpoints: [{ ...set, addresses: [{ ...address, ...over }] }] })
  const bad = [
    { ...service, name: 'a.b' },
    { ...service, namespace: '../x' },
    { ...service, clusterIPs: ['fd00::1'] },
    { ...service, externalIPs: ['10.96.0.9 }; flush ruleset'] },
    { ...service, loadBalancerIPs: ['many'] },
    { ...service, loadBalancerNode: '*' },
    { ...service, sourceRanges: ['10.0.0.1/8'] },
    { ...service, externalName: 'a b' },
    { ...service, ports: [{ port: 0, protocol: 'TCP' }] },
    { ...service, ports: [{ port: 65_536, protocol: 'TCP' }] },
    { ...service, ports: [{ port: 80, protocol: 'SCTP' }] },
    { ...service, ports: [{ port: 80, protocol: 'TCP', nodePort: -1 }] },
    { ...service, ports: [{ port: 80, protocol: 'TCP', name: 'a"b' }] },
    { ...service, affinitySeconds: 0 },
    { ...service, affinitySeconds: 86_401 },
    { ...service, healthCheckNodePort: 70_000 },
    { ...service, type: 'Later' },
    { ...service, endpoints: [{ ...set, ports: [{ port: 70_000, protocol: 'TCP' }] }] },
    withAddress({ ip: '10.244.1' }),
    withAddress({ hostname: 'a.b' }),
    withAddress({ pod: 'A_B' }),
    withAddress({ node: 'a b' }),
    withAddress({ zones: ['x'.repeat(254)] }),
    { name: 'web' },
    7,
  ]
  for (const one of bad) {
    const { message, problems } = decodedServices(one, service)
    t.same(message.services, [service], JSON.stringify(one).slice(0, 200))
    t.match(problems, [/^Service "/])
  }
})

const endpointsOf = (...ips: readonly string[]) => [{ ports: [], addresses: ips.map((ip) => ({ ...address, ip })) }]

test('the part of a Service in IPv6 has addresses of IPv6 only', async (t) => {
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
    t.match(problems, [/^Service "/])
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

test('what is no message of Services is refused', async (t) => {
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
