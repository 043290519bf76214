import { test } from 'tap'
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import type { NodeRoute } from './network-report.ts'
import { lostWays, nodeOfPod, type PathEnd, type PathFindings, placeOfAddress } from './path-ends.ts'

type Given = Partial<Omit<NodeRoute, 'ipv6'>> & { readonly ipv6?: NonNullable<NodeRoute['ipv6']>['state'] }

/** `pi-1` is this node; the others differ in their way, or in the state of one family. */
const given: readonly Given[] = [
  { way: 'none', state: 'this node', ipv6: 'this node' },
  { way: 'route', ipv6: 'in place' },
  { way: 'tunnel', ipv6: 'missing' },
  { way: 'wireguard', ipv6: 'in place' },
  { way: 'wireguard', relay: 'hub', state: 'not proven', ipv6: 'in place' },
  { way: 'none', state: 'not reached' },
]
const routes = given.map(({ ipv6, ...more }, index): NodeRoute => {
  const number = index + 1
  return {
    ...{ name: `pi-${number}`, podCIDR: `10.244.${number}.0/24`, address: `192.0.2.${number}` },
    ...{ way: 'none', state: 'in place', ...more },
    ...(ipv6 !== undefined && { ipv6: { podCIDR: `2001:db8:244:${number}::/64`, state: ipv6 } }),
  }
})
const message: NetworkMessage = {
  ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' },
  clusterDomain: 'cluster.local',
  nodes: routes.map(({ name, podCIDR, address, ipv6 }, index) => ({
    ...{ name, podCIDR, address, segment: 'lan' },
    // The last one with IPv6 has no IPv6 address of its own.
    ...(ipv6 && { ipv6: { podCIDR: ipv6.podCIDR, ...(index < 4 && { address: `2001:db8::${index + 1}` }) } }),
  })),
}
const withoutNetwork: PathFindings = { message, services: [], report: { node: 'pi-1', problems: [] } }
const findings: PathFindings = {
  ...withoutNetwork,
  report: {
    ...withoutNetwork.report,
    network: {
      ...{ podCIDR: '10.244.1.0/24', clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', nodes: routes },
      ...{ services: { total: 0, withoutEndpoints: [] }, loadBalancers: [], isolated: [] },
    },
  },
}

test('an address of a pod is at the node with its range, by the way to that node', async (t) => {
  const places: readonly (readonly [string, string, string])[] = [
    ['10.244.1.5', 'pi-1', 'this node'],
    ['10.244.2.255', 'pi-2', 'route by 192.0.2.2'],
    ['10.244.3.5', 'pi-3', 'VXLAN'],
    ['10.244.4.5', 'pi-4', 'WireGuard'],
    ['10.244.5.5', 'pi-5', 'WireGuard by hub (not proven)'],
    ['10.244.6.5', 'pi-6', 'none (not reached)'],
    ['2001:db8:244:1::5', 'pi-1', 'this node'],
    ['2001:db8:244:2::5', 'pi-2', 'route by 2001:db8::2'],
    ['2001:db8:244:3::5', 'pi-3', 'VXLAN (missing)'],
    ['2001:db8:244:5::5', 'pi-5', 'WireGuard by hub'],
  ]
  for (const [ip, node, way] of places) t.same(placeOfAddress(ip, findings), { node, way }, ip)
})

test('an address of a node is reached by the network of the machine, as any other one', async (t) => {
  const machine = 'network of the machine'
  for (const ip of ['192.0.2.1', '2001:db8::1'])
    t.same(placeOfAddress(ip, findings), { node: 'pi-1', way: 'this node' }, ip)
  for (const ip of ['192.0.2.3', '2001:db8::3'])
    t.same(placeOfAddress(ip, findings), { node: 'pi-3', way: machine }, ip)
  for (const ip of ['10.244.99.1', '198.51.100.1', '2001:db8:244:6::5', '2001:db8::9'])
    t.same(placeOfAddress(ip, findings), { node: '-', way: machine }, ip)
  t.same(placeOfAddress('10.244.2.5', withoutNetwork), { node: '-', way: machine }, 'without routes')
})

test('the node of an IPv6 pod has its IPv6 address and state, if it has them', async (t) => {
  t.same(nodeOfPod('10.244.3.5', findings), routes[2])
  t.match(nodeOfPod('2001:db8:244:3::5', findings), { name: 'pi-3', address: '2001:db8::3', state: 'missing' })
  t.match(nodeOfPod('2001:db8:244:5::5', findings), { name: 'pi-5', address: '192.0.2.5', state: 'in place' })
  const [, second] = routes
  if (second === undefined || findings.report.network === undefined) throw new Error('two routes')
  const { ipv6: _, ...single } = second
  const network = { ...findings.report.network, nodes: [single] }
  const off = { ...findings, report: { ...findings.report, network } }
  t.match(nodeOfPod('2001:db8:244:2::5', off), { name: 'pi-2', state: 'not reached' })
  t.equal(nodeOfPod('2001:db8:244:3::5', off), undefined)
  t.equal(nodeOfPod('10.244.99.1', findings), undefined)
})

test('a used end whose node is not reached by its family is lost', async (t) => {
  const end = (node: string, address: string, used = true): PathEnd => ({ node, address, used, way: '' })
  const lost = (...ends: readonly PathEnd[]) => lostWays(ends, findings)
  t.same(lost(), [])
  t.same(lost(end('pi-1', '10.244.1.5:80'), end('pi-2', '10.244.2.5:80'), end('pi-1', '[2001:db8:244:1::5]:80')), [])
  t.same(lost(end('pi-5', '10.244.5.5:80')), ['No complete route to the pods of pi-5: not proven'])
  t.same(lost(end('pi-5', '10.244.5.5:80', false)), [], 'an end that is not used')
  t.same(lost(end('pi-5', '[2001:db8:244:5::5]:80'), end('pi-3', '10.244.3.5')), [], 'by the other family')
  t.same(lost(end('pi-3', '2001:db8:244:3::5'), end('pi-3', '[2001:db8:244:3::6]:80')), [
    'No complete IPv6 route to the pods of pi-3: missing',
  ])
  t.same(lost(end('pi-6', '10.244.6.5:80'), end('pi-6', '2001:db8:244:6::5')), [
    'No complete route to the pods of pi-6: not reached',
    'No complete IPv6 route to the pods of pi-6: not reached',
  ])
  t.same(lost(end('-', '198.51.100.1')), [])
  t.same(lostWays([end('pi-5', '10.244.5.5:80')], withoutNetwork), [])
})
