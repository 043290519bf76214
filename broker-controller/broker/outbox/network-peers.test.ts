import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { keyOwners, networkPeer } from './network-peers.ts'

const status = (...addresses: readonly string[]) => ({
  addresses: addresses.map((address) => ({ type: 'InternalIP', address }) as const),
})

test('a node is reached by its first internal IPv4 address, on the segment of its /24', async (t) => {
  const node = aNode({ name: 'pi-1', spec: { podCIDR: '10.244.1.0/24' }, status: status('fd00::5', '192.168.7.5') })
  t.same(networkPeer(node), {
    name: 'pi-1',
    podCIDR: '10.244.1.0/24',
    address: '192.168.7.5',
    segment: '192.168.7.0/24',
  })
})

test('an annotation names another segment, and a label the zone', async (t) => {
  const placed = aNode({
    spec: { podCIDRs: ['fd00::/64', '10.244.1.0/24'] },
    status: status('192.168.7.5'),
    annotations: { 'bramble.dev/segment': 'workshop' },
    labels: { 'topology.kubernetes.io/zone': 'east' },
  })
  t.match(networkPeer(placed), { podCIDR: '10.244.1.0/24', segment: 'workshop', zone: 'east' })
  const long = aNode({
    spec: { podCIDR: '10.244.1.0/24' },
    status: status('192.168.7.5'),
    annotations: { 'bramble.dev/segment': 'x'.repeat(100_000) },
  })
  t.equal(networkPeer(long)?.segment.length, 253)
})

test('a node without a range for pods or without an IPv4 address is not published', async (t) => {
  t.equal(networkPeer(aNode({ status: status('192.168.7.5') })), undefined)
  t.equal(networkPeer(aNode({ spec: { podCIDR: 'fd00::/64' }, status: status('192.168.7.5') })), undefined)
  t.equal(networkPeer(aNode({ spec: { podCIDR: '10.244.1.0/24' }, status: status('fd00::5') })), undefined)
  t.equal(networkPeer(aNode({ spec: { podCIDR: '10.244.1.0/24' }, status: status() })), undefined)
})

test('a node that has no part in the network is not published while its condition is True', async (t) => {
  const off = (value: 'True' | 'False') => ({
    ...status('192.168.7.5'),
    conditions: [{ type: 'FleetNetworkUnavailable', status: value, reason: 'OtherAgent', message: '' }],
  })
  const spec = { podCIDR: '10.244.1.0/24' }
  t.equal(networkPeer(aNode({ spec, status: off('True') })), undefined)
  t.match(networkPeer(aNode({ spec, status: off('False') })), { podCIDR: '10.244.1.0/24' })
})

test('addresses of other kinds are not used, and most fields of a Node may be missing', async (t) => {
  const external = { type: 'ExternalIP', address: '203.0.113.9' } as const
  const addresses = [external, ...status('192.168.7.5').addresses]
  const annotations = { other: 'annotation' }
  const node = aNode({ spec: { podCIDR: '10.244.1.0/24' }, status: { addresses }, annotations })
  t.match(networkPeer(node), { address: '192.168.7.5', segment: '192.168.7.0/24' })
  const { labels: _, ...metadata } = node.metadata
  t.notOk('zone' in (networkPeer({ ...node, metadata }) ?? {}))
  const { spec, status: known, ...bare } = node
  t.equal(networkPeer({ ...bare, ...(known && { status: known }) }), undefined)
  t.equal(networkPeer({ ...bare, ...(spec && { spec }) }), undefined)
  t.equal(networkPeer({ ...node, status: {} }), undefined)
})

test('a node that proves its address has the port of it, and one with another value has none', async (t) => {
  const portOf = (value: string) => {
    const annotations = { 'bramble.dev/probe-port': value }
    return networkPeer(aNode({ spec: { podCIDR: '10.244.1.0/24' }, status: status('192.168.7.5'), annotations }))
      ?.probePort
  }
  t.equal(portOf('8473'), 8473)
  t.equal(portOf('65535'), 65_535)
  for (const value of ['', '0', '65536', '08473', '8473 ', '-1', '1e3', 'x']) t.equal(portOf(value), undefined, value)
})

test('a node that is made now proves its address, whatever its agent writes of its version', async (t) => {
  const portOf = (creationTimestamp: string, annotations: { readonly [name: string]: string } = {}) => {
    const node = aNode({ spec: { podCIDR: '10.244.1.0/24' }, status: status('192.168.7.5'), annotations })
    return networkPeer({ ...node, metadata: { ...node.metadata, creationTimestamp } })?.probePort
  }
  t.equal(portOf('2026-11-30T23:59:59Z'), undefined, 'it may be of an agent from before proofs')
  t.equal(portOf('2026-11-30T23:59:59Z', { 'bramble.dev/probe-port': '9' }), 9)
  t.equal(portOf('2026-12-01T00:00:00Z'), 8473)
  t.equal(portOf('2026-12-01T00:00:00Z', { 'bramble.dev/probe-port': 'x' }), 8473)
})

test('an address of the loopback, the link or a group is not that of a peer', async (t) => {
  for (const address of ['127.0.0.1', '169.254.169.254', '224.0.0.1', '0.0.0.0']) {
    t.equal(networkPeer(aNode({ spec: { podCIDR: '10.244.1.0/24' }, status: status(address) })), undefined, address)
  }
})

const key = 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg='

test('of a fleet with WireGuard a node has its key, its endpoint, and whether it is a relay', async (t) => {
  const annotations = {
    'bramble.dev/wireguard-public-key': key,
    'bramble.dev/wireguard-endpoint': 'home.example.org:51871',
    'bramble.dev/relay': 'true',
  }
  const placed = { spec: { podCIDR: '10.244.1.0/24' }, status: status('192.168.7.5') }
  const fields = { wireguardKey: key, wireguardEndpoint: 'home.example.org:51871', relay: true }
  t.match(networkPeer(aNode({ ...placed, annotations }), { wireguard: true }), fields)
  for (const field of Object.keys(fields))
    t.notOk(field in (networkPeer(aNode({ ...placed, annotations })) ?? {}), field)
  const plain = networkPeer(aNode({ ...placed }))
  t.same(networkPeer(aNode(placed), { wireguard: true }), plain)
  const wrong = {
    'bramble.dev/wireguard-public-key': `${key} endpoint`,
    'bramble.dev/wireguard-endpoint': '$(id):1',
    'bramble.dev/relay': 'yes',
  }
  t.same(
    networkPeer(aNode({ ...placed, annotations: wrong }), { wireguard: true }),
    plain,
    'invalid values are left out',
  )
})

test('in a fleet with both IP families a node has its IPv6 range and address', async (t) => {
  const ranges = (...podCIDRs: readonly string[]) => ({ podCIDR: podCIDRs[0] ?? '', podCIDRs })
  const node = aNode({
    spec: ranges('10.244.1.0/24', 'FD00:10:244:1::/64'),
    status: status('192.168.7.5', 'fe80::5', 'FD00:7:0::5'),
  })
  t.same(networkPeer(node, { ipv6: true }), {
    ...networkPeer(node),
    ipv6: { podCIDR: 'fd00:10:244:1::/64', address: 'fd00:7::5' },
  })
  t.notOk('ipv6' in (networkPeer(node) ?? {}), 'in another fleet no field of the message is new')
  const far = aNode({
    spec: ranges('10.244.1.0/24', 'fd00:10:244:1::/64'),
    status: status('192.168.7.5', 'fe80::5', '::1'),
  })
  t.same(
    networkPeer(far, { ipv6: true })?.ipv6,
    { podCIDR: 'fd00:10:244:1::/64' },
    'a link-local address does not count',
  )
  const single = aNode({ spec: ranges('10.244.1.0/24'), status: status('192.168.7.5', 'fd00:7::5') })
  t.notOk('ipv6' in (networkPeer(single, { ipv6: true }) ?? {}), 'a node without a range has nothing to be reached by')
})

test('a key belongs to the first node that has it, until that one has another', async (t) => {
  const { claim } = keyOwners()
  t.equal(claim('pi-1', 'a'), true)
  t.equal(claim('pi-2', 'a'), false)
  t.equal(claim('pi-2', 'b'), true)
  t.equal(claim('pi-2', 'a'), false, 'also of a node that had one of its own')
  t.equal(claim('pi-3', 'b'), true, 'which it has given up')
  t.equal(claim('pi-1', 'a'), true)
  t.equal(claim('pi-1', undefined), false)
  t.equal(claim('pi-2', 'a'), true)
})
