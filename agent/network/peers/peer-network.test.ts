import { test } from 'tap'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { peerNetworkOf } from './peer-network.ts'

const peer = (name: string, podCIDR: string, address: string, segment = 'lan'): NetworkPeer => ({
  name,
  podCIDR,
  address,
  segment,
})
const message = (...nodes: readonly NetworkPeer[]): NetworkMessage => ({
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes,
})
const own = peer('pi-1', '10.244.1.0/24', '192.168.1.1')
const second = peer('pi-2', '10.244.2.0/24', '192.168.1.2')
const far = peer('pi-3', '10.244.3.0/24', '172.16.0.3', 'attic')

test('a node of the same segment is the gateway to its pods', async (t) => {
  t.same(peerNetworkOf(message(own, second), 'pi-1'), {
    address: '192.168.1.1',
    clusterCIDR: '10.244.0.0/16',
    serviceCIDR: '10.96.0.0/12',
    podCIDR: '10.244.1.0/24',
    nodeAddresses: ['192.168.1.1', '192.168.1.2'],
    routes: [{ range: '10.244.2.0/24', gateway: '192.168.1.2' }],
    tunnel: undefined,
    isGuarded: false,
    relays: new Map(),
    gaps: [],
  })
})

test('the addresses of nodes are in one order, whatever that of the nodes is', async (t) => {
  const addresses = (...nodes: readonly NetworkPeer[]) => peerNetworkOf(message(...nodes), 'pi-1')?.nodeAddresses
  t.same(addresses(second, own), addresses(own, second))
})

test('pods of another segment are reached by a tunnel, whose ends follow from their ranges', async (t) => {
  const network = peerNetworkOf(message(own, second, far), 'pi-1')
  t.same(network?.routes, [
    { range: '10.244.2.0/24', gateway: '192.168.1.2' },
    { range: '10.244.3.0/24', gateway: '10.244.3.0', device: 'bramble-vxlan' },
  ])
  t.same(network?.tunnel, {
    kind: 'vxlan',
    address: '10.244.1.0',
    mac: '02:62:0a:f4:01:00',
    peers: [{ address: '10.244.3.0', mac: '02:62:0a:f4:03:00', node: '172.16.0.3' }],
  })
  const other = peerNetworkOf(message(own, second, far), 'pi-3')
  t.match(other?.tunnel?.peers, [{ address: '10.244.1.0', mac: '02:62:0a:f4:01:00', node: own.address }])
  t.same(
    other?.routes.map(({ device }) => device),
    ['bramble-vxlan', 'bramble-vxlan'],
  )
})

test('without a range of the cluster for itself a node has no routes', async (t) => {
  t.equal(peerNetworkOf(message(second), 'pi-1'), undefined)
  t.equal(peerNetworkOf(message(peer('pi-1', '10.9.0.0/24', '192.168.1.1'), second), 'pi-1'), undefined)
  t.equal(peerNetworkOf(message(peer('pi-1', '10.244.1.1/24', '192.168.1.1'), second), 'pi-1'), undefined)
  t.equal(peerNetworkOf({ ...message(own, second), clusterCIDR: 'none' }, 'pi-1'), undefined)
})

test('ranges outside of the cluster, or that another node has, get no route', async (t) => {
  const network = peerNetworkOf(
    message(
      own,
      peer('outside', '192.168.0.0/16', '192.168.1.3'),
      peer('wider', '10.0.0.0/8', '192.168.1.4'),
      peer('as own', '10.244.1.128/25', '192.168.1.5'),
      peer('no range', 'fd00::/64', '192.168.1.7'),
      peer('same machine', '10.244.5.0/24', own.address),
      second,
      peer('as second', '10.244.2.0/24', '192.168.1.6'),
    ),
    'pi-1',
  )
  t.same(
    network?.routes.map(({ gateway }) => gateway),
    [second.address],
  )
  t.same(network?.nodeAddresses, [own.address, second.address])
})

test('of ranges of several sizes that overlap the first one counts', async (t) => {
  const ranges = [
    '10.244.2.0/25',
    '10.244.2.0/24', // around it
    '10.244.2.0/26', // in it
    '10.244.2.128/25',
    '10.244.0.0/23', // around that of the node itself
    '10.244.4.0/22',
    '10.244.7.255/32',
    '10.244.8.0/32',
    '10.244.0.0/16',
  ]
  const others = ranges.map((range, index) => peer(`other-${index}`, range, `192.168.1.${index + 10}`))
  t.same(
    peerNetworkOf(message(own, ...others), 'pi-1')?.routes.map(({ range }) => range),
    ['10.244.2.0/25', '10.244.2.128/25', '10.244.4.0/22', '10.244.8.0/32'],
  )
})
