import { test } from 'tap'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { peerNetworkOf } from './peer-network.ts'

/** The node `pi-NUMBER`; its key is invalid, but not read here. */
const peer = (number: number, more: Partial<NetworkPeer> = {}): NetworkPeer => ({
  name: `pi-${number}`,
  podCIDR: `10.244.${number}.0/24`,
  address: `192.168.1.${number}`,
  segment: `site ${number}`,
  wireguardKey: `key of ${number}`,
  ...more,
})
const networkOf = (name: string, ...nodes: readonly NetworkPeer[]) => {
  const message: NetworkMessage = {
    ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' },
    ...{ clusterDomain: 'cluster.local', wireguard: { port: 51_871 }, nodes },
  }
  const network = peerNetworkOf(message, name)
  if (network?.tunnel?.kind !== 'wireguard') throw new Error('There is no WireGuard')
  return { ...network, peers: network.tunnel.peers, tunnel: network.tunnel }
}
const hidden = { wireguardEndpoint: 'none' }
const relay = { relay: true, wireguardEndpoint: 'relay.example.org:443' }

test('nodes that reach each other exchange packets at their addresses, with the port of the fleet', async (t) => {
  const { routes, peers, tunnel, gaps, isGuarded } = networkOf('pi-1', peer(1), peer(2), peer(3, { segment: 'site 1' }))
  t.same(tunnel.address, '10.244.1.0')
  t.equal(tunnel.port, 51_871)
  t.same(peers, [
    {
      name: 'pi-2',
      publicKey: 'key of 2',
      endpoint: '192.168.1.2:51871',
      ranges: ['10.244.2.0/24'],
      keepsAlive: false,
    },
  ])
  t.same(routes, [
    { range: '10.244.3.0/24', gateway: '192.168.1.3' },
    { range: '10.244.2.0/24', gateway: '10.244.2.0', device: 'bramble-wg' },
  ])
  t.same(gaps, [])
  t.equal(isGuarded, true)
})

test('an annotation has the endpoint; a node behind NAT connects, and is not connected to', async (t) => {
  const outside = peer(2, { wireguardEndpoint: 'home.example.org:5000' })
  const [behind, open] = [networkOf('pi-1', peer(1, hidden), outside), networkOf('pi-2', peer(1, hidden), outside)]
  t.match(behind.peers, [{ endpoint: 'home.example.org:5000', keepsAlive: true }])
  t.match(open.peers, [{ name: 'pi-1', endpoint: undefined, keepsAlive: false, ranges: ['10.244.1.0/24'] }])
})

test('two nodes that cannot be reached use the relay, and both the same one', async (t) => {
  const nodes = [peer(1, hidden), peer(2, hidden), peer(8, relay), peer(7, { ...relay, ...hidden }), peer(9, relay)]
  const one = networkOf('pi-1', ...nodes)
  t.match(
    one.peers.map(({ name, ranges }) => [name, ranges]),
    [
      ['pi-8', ['10.244.2.0/24', '10.244.7.0/24', '10.244.8.0/24']],
      ['pi-9', ['10.244.9.0/24']],
    ],
  )
  t.same(one.relays.get('pi-2'), 'pi-8', 'the first by name of those that can be reached')
  t.match(one.routes[0], { range: '10.244.2.0/24', gateway: '10.244.2.0', device: 'bramble-wg' })
  t.same(networkOf('pi-2', ...nodes.toReversed()).relays.get('pi-1'), 'pi-8', 'whatever the order is')
  const passing = networkOf('pi-8', ...nodes)
  t.same(passing.relays, new Map())
  t.same(
    passing.peers.map(({ ranges }) => ranges),
    [['10.244.1.0/24'], ['10.244.2.0/24'], ['10.244.7.0/24'], ['10.244.9.0/24']],
    'a node sends what it has itself, also to the relay',
  )
})

test('a relay on the link of a node is the gateway to the other sites', async (t) => {
  const nodes = [peer(1, hidden), peer(2, hidden), peer(8, { ...relay, segment: 'site 1' })]
  const { routes, peers, relays } = networkOf('pi-1', ...nodes)
  t.same(peers, [])
  t.same(routes, [
    { range: '10.244.8.0/24', gateway: '192.168.1.8' },
    { range: '10.244.2.0/24', gateway: '192.168.1.8', source: '10.244.1.0' },
  ])
  t.same(relays, new Map([['pi-2', 'pi-8']]))
  t.match(networkOf('pi-2', ...nodes).peers, [{ name: 'pi-8', ranges: ['10.244.1.0/24', '10.244.8.0/24'] }])
})

test('a node without a way is a gap, and gets no other tunnel', async (t) => {
  const { wireguardKey: _, ...older } = peer(3)
  const { routes, peers, gaps } = networkOf('pi-1', peer(1, hidden), peer(2, hidden), older)
  t.same([routes, peers], [[], []])
  t.match(gaps, [/^no route to the pods of pi-2: .* bramble\.dev\/relay=true$/, /^node pi-3 has not reported/])
  const keyless = { ...older, ...relay }
  const through = networkOf('pi-1', peer(1, hidden), peer(2, hidden), keyless)
  t.match(through.gaps, [/^node pi-3 has not reported/], 'once, also if it is the relay')
  t.equal(through.gaps.length, 1)
})

test('machines of different sites may have one address, and are not trusted by it', async (t) => {
  const same = peer(2, { address: '192.168.1.1' })
  const { peers, nodeAddresses } = networkOf('pi-1', peer(1), same, peer(3), peer(4, { segment: 'site 1' }))
  t.match(peers, [{ name: 'pi-2' }, { name: 'pi-3' }])
  t.same(nodeAddresses, ['192.168.1.1', '192.168.1.4'], 'those of this link')
  const here = networkOf('pi-1', peer(1), { ...same, segment: 'site 1' })
  t.same([here.peers, here.routes], [[], []], 'on one link it is this machine')
})
