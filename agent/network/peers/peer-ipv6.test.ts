import { test } from 'tap'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { podRangeOfIPv6 } from './peer-ipv6.ts'
import { peerNetworkOf } from './peer-network.ts'

/** The node `pi-NUMBER`. */
const peer = (number: number, more: Partial<NetworkPeer> = {}): NetworkPeer => ({
  name: `pi-${number}`,
  podCIDR: `10.244.${number}.0/24`,
  address: `192.168.1.${number}`,
  segment: 'lan',
  ipv6: { podCIDR: rangeOf(number), address: `fd00:1::${number}` },
  ...more,
})
const rangeOf = (number: number) => `fd00:10:244:${number}::/64`
const ipv6 = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
const message = (nodes: readonly NetworkPeer[], more: Partial<NetworkMessage> = {}): NetworkMessage => ({
  ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' },
  ...{ ipv6, clusterDomain: 'cluster.local', nodes, ...more },
})
const far = { segment: 'attic' }

test('a node of the same segment is the gateway of both families', async (t) => {
  const network = peerNetworkOf(message([peer(1), peer(2)]), 'pi-1')
  t.same(network?.ipv6, {
    ...ipv6,
    podCIDR: 'fd00:10:244:1::/64',
    nodeAddresses: ['fd00:1::1', 'fd00:1::2'],
    routes: [{ range: 'fd00:10:244:2::/64', gateway: 'fd00:1::2' }],
    serviceRoute: { range: 'fd00:10:96::/112', source: 'fd00:1::1' },
  })
  t.same(network?.ipv6Gaps, [])
})

test('without the ranges of the fleet, a range of its own, or IPv6 on the machine a node has IPv4 only', async (t) => {
  const { ipv6: _, ...ofIPv4 } = message([peer(1), peer(2)])
  t.equal(peerNetworkOf(ofIPv4, 'pi-1')?.ipv6, undefined)
  t.equal(peerNetworkOf(ofIPv4, 'pi-1')?.ipv6Gaps, undefined)
  const { ipv6: __, ...bare } = peer(1)
  for (const own of [
    bare,
    peer(1, { ipv6: { podCIDR: 'fd00:9:9:1::/64' } }),
    peer(1, { ipv6: { podCIDR: 'fd00:10:244::/60' } }),
  ]) {
    t.equal(podRangeOfIPv6(message([own]), 'pi-1'), undefined)
    const network = peerNetworkOf(message([own, peer(2)]), 'pi-1')
    t.equal(network?.ipv6, undefined)
    t.match(network?.ipv6Gaps, [/^The controller has not assigned an IPv6 range/])
    t.equal(network?.routes.length, 1)
  }
  const off = peerNetworkOf(message([peer(1), peer(2)]), 'pi-1', false)
  t.equal(off?.ipv6, undefined)
  t.match(off?.ipv6Gaps, [/^This machine has IPv6 off/])
})

test('nodes of one segment without an IPv6 address have no route, and are named', async (t) => {
  const without = { ipv6: { podCIDR: rangeOf(2) } }
  const other = peerNetworkOf(message([peer(1), peer(2, without), peer(3)]), 'pi-1')
  t.same(
    other?.ipv6?.routes.map(({ range }) => range),
    [rangeOf(3)],
  )
  t.match(other?.ipv6Gaps, [/^pods of pi-2 are not reached by IPv6: pi-2 has no IPv6 InternalIP/])
  const own = peerNetworkOf(message([peer(1, { ipv6: { podCIDR: rangeOf(1) } }), peer(2), peer(3)]), 'pi-1')
  t.same(own?.ipv6?.routes, [])
  t.match(own?.ipv6Gaps, [/this node has no IPv6 InternalIP/])
  t.equal(own?.routes.length, 2)
})

test('of two nodes with one IPv6 range the first has it, and none has that of this node', async (t) => {
  const nodes = [
    peer(1),
    peer(2),
    peer(3, { ipv6: { podCIDR: rangeOf(2) } }),
    peer(4, { ipv6: { podCIDR: rangeOf(1) } }),
  ]
  t.same(peerNetworkOf(message(nodes), 'pi-1')?.ipv6?.routes, [{ range: rangeOf(2), gateway: 'fd00:1::2' }])
})

test('VXLAN has an IPv6 address at each end, whether or not nodes have some', async (t) => {
  const network = peerNetworkOf(message([peer(1), peer(2, { ...far, ipv6: { podCIDR: rangeOf(2) } })]), 'pi-1')
  t.same(network?.ipv6?.routes, [{ range: rangeOf(2), gateway: 'fd00:10:244:2::', device: 'bramble-vxlan' }])
  t.match(network?.tunnel, { ipv6: 'fd00:10:244:1::', peers: [{ address: '10.244.2.0', ipv6: 'fd00:10:244:2::' }] })
  t.same(network?.ipv6Gaps, [])
})

test('peers of WireGuard send and receive both ranges, also those that they pass on', async (t) => {
  const wireguard = { wireguard: { port: 51_871 } }
  const hidden = { wireguardEndpoint: 'none', wireguardKey: 'k' }
  const relay = peer(2, { segment: 'hub', relay: true, wireguardKey: 'relay' })
  const third = peer(3, { ...far, ...hidden })
  const network = peerNetworkOf(message([peer(1, hidden), relay, third], wireguard), 'pi-1')
  t.match(network?.tunnel, {
    ipv6: 'fd00:10:244:1::',
    peers: [{ name: 'pi-2', ranges: ['10.244.2.0/24', '10.244.3.0/24', rangeOf(2), rangeOf(3)] }],
  })
  t.same(
    network?.ipv6?.routes.map(({ range, device }) => `${range} ${device}`),
    [`${rangeOf(2)} bramble-wg`, `${rangeOf(3)} bramble-wg`],
  )
  t.same(network?.ipv6?.nodeAddresses, ['fd00:1::1'], 'those of other sites have their end of the tunnel')
  const near = { ...relay, segment: 'lan' }
  t.same(peerNetworkOf(message([peer(1, hidden), near, third], wireguard), 'pi-1')?.ipv6?.routes, [
    { range: rangeOf(2), gateway: 'fd00:1::2' },
    { range: rangeOf(3), gateway: 'fd00:1::2', source: 'fd00:10:244:1::' },
  ])
})
