import { test } from 'tap'
import type { NodeCondition } from '../../../api/node.ts'
import { aNode, type NodeOverrides } from '../../../api/testing/builders.ts'
import { type BalancerNode, balancerNode, nodesOnLink, usualLink } from './balancer-nodes.ts'

const ranges = { podCIDRs: ['10.42.1.0/24', '2001:db8:42:1::/64'] }
const internal = (...addresses: readonly string[]) =>
  addresses.map((address) => ({ type: 'InternalIP' as const, address }))

/** Node pi-01 with a range of each family. */
function of({ status, ...over }: NodeOverrides, withIPv6 = true): BalancerNode | undefined {
  return balancerNode(aNode({ spec: ranges, ...over, status: { ...aNode(over).status, ...status } }), withIPv6)
}

test('a node has its first address of each family', async (t) => {
  const hostname = { type: 'Hostname', address: 'pi-01' } as const
  const addresses = [hostname, ...internal('2001:DB8:0::11', '192.0.2.11', '2001:db8::12', '192.0.2.12')]
  t.same(of({ status: { addresses } }), {
    ...{ name: 'pi-01', address: '192.0.2.11', ipv6: '2001:db8::11', segment: '192.0.2.0/24' },
    ...{ isReady: true, isExcluded: false },
  })
  const external = { type: 'ExternalIP', address: '198.51.100.1' } as const
  t.equal(of({ status: { addresses: [external, ...internal('2001:db8::11')] } }), undefined, 'no IPv4 address')
  t.equal(of({ status: { addresses: [] } }), undefined)
})

test('a node forwards IPv6 with a range for its pods and an address that routers forward', async (t) => {
  const ipv6 = (addresses: readonly string[], spec: NodeOverrides['spec'] = ranges, withIPv6 = true) =>
    of({ spec, status: { addresses: internal('192.0.2.11', ...addresses) } }, withIPv6)?.ipv6
  t.equal(ipv6(['2001:db8::11']), '2001:db8::11')
  t.equal(ipv6(['fd00::11']), 'fd00::11')
  t.equal(ipv6(['fe80::11', '2001:db8::11']), '2001:db8::11', 'link-local addresses are passed over')
  t.equal(ipv6(['fe80::11']), undefined)
  t.equal(ipv6([]), undefined)
  t.equal(ipv6(['2001:db8::11'], { podCIDRs: ['10.42.1.0/24'] }), undefined, 'no range')
  t.equal(ipv6(['2001:db8::11'], ranges, false), undefined, 'pods of the fleet have IPv4 alone')
})

test('a node is ready while its network is, and excluded by its label with any value', async (t) => {
  const isReady = (...conditions: readonly NodeCondition[]) => of({ conditions })?.isReady
  const ready = { type: 'Ready', status: 'True' } as const
  t.equal(isReady(ready), true)
  t.equal(isReady({ type: 'Ready', status: 'Unknown' }), false)
  t.equal(isReady(), false, 'it has not reported')
  for (const type of ['NetworkUnavailable', 'FleetNetworkUnavailable']) {
    t.equal(isReady(ready, { type, status: 'True' }), false, type)
    t.equal(isReady(ready, { type, status: 'False' }), true, type)
    t.equal(isReady(ready, { type, status: 'Unknown' }), true, type)
  }
  const label = 'node.kubernetes.io/exclude-from-external-load-balancers'
  t.same(
    ['', 'true', 'false'].map((value) => of({ labels: { [label]: value } })?.isExcluded),
    [true, true, true],
  )
  t.equal(of({ labels: { other: '' } })?.isExcluded, false)
})

test('a cordoned node goes on receiving packets, as its pods go on', async (t) => {
  t.match(of({ unschedulable: true, spec: { ...ranges, unschedulable: true } }), { isReady: true, isExcluded: false })
})

test('the segment of a node is that of its annotation', async (t) => {
  t.equal(of({ annotations: { 'bramble.dev/segment': 'house' } })?.segment, 'house')
  t.equal(of({ annotations: { 'bramble.dev/segment': '' } })?.segment, '192.0.2.0/24')
})

test('addresses are on one link in an IPv4 /24, and in an IPv6 /64', async (t) => {
  const isSame = (one: string, other: string) => usualLink(one) === usualLink(other)
  t.equal(isSame('192.0.2.1', '192.0.2.254'), true)
  t.equal(isSame('192.0.2.1', '192.0.3.1'), false)
  t.equal(isSame('2001:db8::1', '2001:DB8:0:0:ffff::2'), true)
  t.equal(isSame('2001:db8::1', '2001:db8:0:1::1'), false)
})

test('the nodes of a link are those of the segments that are beside the address', async (t) => {
  const on = (name: string, address: string, segment: string, ipv6?: string): BalancerNode => ({
    ...{ name, address, segment, isReady: true, isExcluded: false, ...(ipv6 && { ipv6 }) },
  })
  const nodes = [
    on('beside', '192.0.2.1', 'house', '2001:db8:1::1'),
    on('same segment', '198.51.100.1', 'house'),
    on('other', '203.0.113.1', 'shed', '2001:db8:2::1'),
  ]
  const names = (ip: string) => nodesOnLink(nodes, ip).map(({ name }) => name)
  t.same(names('192.0.2.240'), ['beside', 'same segment'])
  t.same(names('2001:db8:2::240'), ['other'])
  t.same(names('2001:db8:1::240'), ['beside', 'same segment'])
  t.same(names('192.0.9.240'), ['beside', 'same segment', 'other'], 'no node is beside it')
  t.same(nodesOnLink([], '192.0.2.240'), [])
})
