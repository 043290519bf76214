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

test('a message of the network is taken as it is, and a node with an invalid value is left out', async (t) => {
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

const fleetOfBoth = { ...facts, ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' } }
const peerOfBoth = { ...peer, ipv6: { podCIDR: 'fd00:10:244:1::/64', address: 'fd00:1::5' } }

test('a node with an invalid range or IPv6 address, or one that no router forwards, is left out', async (t) => {
  const withIPv6 = (podCIDR: string, address?: string) => {
    const ipv6: { podCIDR: string; address?: string } = { podCIDR, ...(address !== undefined && { address }) }
    return { ...peer, name: 'pi-2', ipv6 }
  }
  const range = 'fd00:10:244:2::/64'
  const all = [peerOfBoth, ...['2001:db8::5', 'fc00::5', '3fff::5', undefined].map((ip) => withIPv6(range, ip))]
  t.same(decodeNetwork({ ...fleetOfBoth, nodes: all }), {
    ok: true,
    value: { message: { ...fleetOfBoth, nodes: all }, problems: [] },
    unknownFields: [],
  })
  const ranges = [
    ...['', 'all', '10.244.2.0/24', 'fd00:10:244:2::', 'fd00:10:244:2::/129', 'fd00:10:244:2::/-1', `${range} `],
    ...['fd00:10:244:2::1/64', 'FD00:10:244:2::/64', 'fd00:10:244:2:0::/64', 'fd00:10:244:2::/064'],
    ...[`${range}; flush ruleset`, `${range}\n`, '--help', 'fd00::/64,fd01::/64', `fd00:${'0:'.repeat(50_000)}:/64`],
  ]
  const addresses = [
    ...['', '192.168.1.6', '::', '::1', 'fe80::5', 'fe80::5%eth0', 'febf::5', 'fec0::5', 'ff02::1', '::ffff:192.0.2.1'],
    ...['64:ff9b::c000:201', 'FD00::5', 'fd00:0::5', 'fd00:0:0:0:0:0:0:5', 'fd00::5%eth0', 'fd00::5/64', '[fd00::5]'],
    ...[
      'fd00::5 }; flush ruleset',
      'fd00::5\n',
      ' fd00::5',
      'fd00:::5',
      'fd00::5::1',
      'fd00::12345',
      'fd00:1',
      '--help',
    ],
  ]
  const bad = [...ranges.map((one) => withIPv6(one)), ...addresses.map((one) => withIPv6(range, one))]
  for (const other of bad) {
    const { podCIDR, address: ip = '' } = other.ipv6
    t.match(
      decodeNetwork({ ...fleetOfBoth, nodes: [other, peerOfBoth] }),
      { ok: true, value: { message: { nodes: [peerOfBoth] }, problems: ['node "pi-2"'] } },
      JSON.stringify(`${podCIDR} ${ip}`.slice(0, 60)),
    )
  }
})

test('a message of the network with IPv6 fields of another type is refused', async (t) => {
  const shapes = [7, '', 'fd00::/64', [], ['fd00::/64'], {}, { podCIDR: 7 }, { podCIDR: null, address: 'fd00::5' }]
  for (const ipv6 of [...shapes, { podCIDR: 'fd00::/64', address: ['fd00::5'] }, { address: 'fd00::5' }]) {
    const decoded = decodeNetwork({ ...fleetOfBoth, nodes: [{ ...peer, ipv6 }] })
    t.match(decoded, { ok: false, problems: [{ field: /^nodes\[0\]\.ipv6/ }] }, JSON.stringify(ipv6))
  }
  for (const ipv6 of [...shapes, { clusterCIDR: 'fd00::/56' }, { clusterCIDR: 'fd00::/56', serviceCIDR: 1 }]) {
    const decoded = decodeNetwork({ ...facts, ipv6, nodes: [peer] })
    t.match(decoded, { ok: false, problems: [{ field: /^ipv6/ }] }, JSON.stringify(ipv6))
  }
})

test('a message of the network whose own IPv6 ranges are invalid, or that no router forwards, is refused', async (t) => {
  const good = fleetOfBoth.ipv6
  const ranges = [
    ...['', '-', '10.244.0.0/16', 'fd00::', 'fd00::1/56', 'FD00::/56', 'fd00:0::/56', 'fd00::/129', 'fd00::/56 }'],
    ...['::/0', '::/128', 'fe80::/64', 'ff00::/8', '::ffff:10.0.0.0/104', 'fc00::/6', '4000::/2', '64:ff9b::/96'],
  ]
  for (const range of ranges) {
    for (const field of ['clusterCIDR', 'serviceCIDR']) {
      const decoded = decodeNetwork({ ...facts, ipv6: { ...good, [field]: range }, nodes: [peerOfBoth] })
      t.match(decoded, { ok: false, problems: [{ field: `ipv6.${field}` }] }, `${field} ${range}`)
    }
  }
  const both = decodeNetwork({ ...facts, ipv6: { clusterCIDR: 'a', serviceCIDR: 'b' }, nodes: [] })
  t.match(both, { ok: false, problems: [{ field: 'ipv6.clusterCIDR' }, { field: 'ipv6.serviceCIDR' }] })
})

test('null means no IPv6, and unknown IPv6 fields are left out', async (t) => {
  const without = decodeNetwork({ ...facts, ipv6: null, nodes: [{ ...peer, ipv6: null }] })
  t.same(without.ok && without.value, { message: { ...facts, nodes: [peer] }, problems: [] })
  const later = { ...peerOfBoth, ipv6: { ...peerOfBoth.ipv6, prefix: '; reboot' } }
  const decoded = decodeNetwork({ ...fleetOfBoth, ipv6: { ...fleetOfBoth.ipv6, mtu: 1 }, nodes: [later] })
  t.same(decoded.ok && decoded.value.message, { ...fleetOfBoth, nodes: [peerOfBoth] })
})

test('a message of the network with invalid values of its own is refused', async (t) => {
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

test('a Service with an invalid value does not affect the others', async (t) => {
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
