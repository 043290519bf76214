import { test } from 'tap'
import type { BalancedService } from './balanced-services.ts'
import type { BalancerNode } from './balancer-nodes.ts'
import { balanceByNodes, mostNodeAddresses, type PortUse } from './node-balancing.ts'
import { balancedService as service } from './testing/services.ts'

function node(number: number, given: Partial<BalancerNode> = {}): BalancerNode {
  return {
    name: `pi-${number}`,
    address: `192.168.1.${number}`,
    segment: 'lan',
    isReady: true,
    isExcluded: false,
    ...given,
  }
}

const free: PortUse = { kept: new Set(['TCP/22']), nodePorts: new Map(), hostPorts: new Map() }
const two = [node(2), node(1)]
const result = (services: readonly BalancedService[], nodes = two, use: Partial<PortUse> = {}) =>
  Object.fromEntries(balanceByNodes(services, nodes, { ...free, ...use }))

test('a Service has the addresses of the nodes that are ready and not excluded', async (t) => {
  const all = [...two, node(3, { isReady: false }), node(4, { isExcluded: true })]
  t.same(result([service('a')], all)['shop/a'], { ips: ['192.168.1.1', '192.168.1.2'], node: '*' })
  const local = service('a', { policy: 'Local', endpointNodes: new Set(['pi-2']) })
  t.same(result([local])['shop/a']?.ips, ['192.168.1.2'], 'with an endpoint, if the policy is Local')
})

test('a Service has the addresses of nodes in its families', async (t) => {
  const nodes = [node(1, { ipv6: 'fd00:7::1' }), node(2), node(3, { ipv6: 'fd00:7::3' })]
  const six = ['fd00:7::1', 'fd00:7::3']
  const four = ['192.168.1.1', '192.168.1.2', '192.168.1.3']
  const ipsOf = (given: Partial<BalancedService>, all = nodes) => result([service('a', given)], all)['shop/a']?.ips
  t.same(ipsOf({}), four)
  t.same(ipsOf({ families: ['IPv4', 'IPv6'] }), [...four, ...six])
  t.same(ipsOf({ families: ['IPv6', 'IPv4'] }), [...six, ...four])
  t.same(ipsOf({ families: ['IPv6'] }), six)
  t.same(result([service('a', { families: ['IPv6'] })], two)['shop/a'], { ips: [] }, 'nodes without IPv6')
  const local = { policy: 'Local', endpointNodes: new Set(['pi-3']) } as const
  t.same(ipsOf({ ...local, families: ['IPv4', 'IPv6'] }), ['192.168.1.3', 'fd00:7::3'])
  const away = nodes.map((one) => ({ ...one, isReady: false }))
  t.same(ipsOf({ families: ['IPv6'], ips: ['fd00:7::3'] }, away), ['fd00:7::3'], 'while no node is ready, they stay')
  const many = Array.from({ length: 40 }, (_, index) => node(index + 1, { ipv6: `fd00:7::${index + 1}` }))
  t.equal(ipsOf({ families: ['IPv4', 'IPv6'] }, many)?.length, mostNodeAddresses)
  const both = result([service('a', { families: ['IPv6'] }), service('bb')], nodes)
  t.same(both['shop/bb']?.ips, ['192.168.1.2'], 'a port of a node belongs to one Service, whichever family it has')
})

test('of two Services with one port the one that has addresses keeps them, then the older one gets them', async (t) => {
  const [older, newer] = [service('a'), service('bb')]
  t.match(result([newer, older])['shop/bb'], {
    ips: [],
    problem:
      'Port TCP/80 is in use on every node, by Service shop/a: change the port, or configure a loadBalancerPool for the controller',
  })
  const found = result([older, { ...newer, ips: ['192.168.1.1'] }])
  t.same(found['shop/bb']?.ips, ['192.168.1.1', '192.168.1.2'])
  t.match(found['shop/a'], { ips: [], problem: /by Service shop\/bb/ })
  t.same(result([older, { ...newer, ports: ['UDP/80'] }])['shop/bb']?.ips.length, 2, 'a protocol has ports of its own')
})

test('nodes where a pod has the port are left out', async (t) => {
  const hostPorts = new Map([['pi-1', new Set(['TCP/80'])]])
  t.same(result([service('a')], two, { hostPorts })['shop/a']?.ips, ['192.168.1.2'])
  t.match(result([service('a')], [node(1)], { hostPorts })['shop/a'], { problem: /by the host port of a pod on pi-1/ })
})

test('node ports of other Services and ports of the machines are not taken', async (t) => {
  const nodePorts = new Map([['TCP/80', 'shop/other']])
  t.match(result([service('a')], two, { nodePorts })['shop/a'], { ips: [], problem: /by Service shop\/other/ })
  t.equal(result([service('other')], two, { nodePorts })['shop/other']?.problem, undefined, 'but its own')
  const ssh = service('a', { ports: ['TCP/2222', 'TCP/22'], ips: ['192.168.1.1'] })
  t.match(result([ssh])['shop/a'], {
    ips: [],
    problem: /^Port TCP\/22 at the addresses of nodes belongs to the machines/,
  })
})

test('while no node is ready, addresses stay', async (t) => {
  const down = two.map((one) => ({ ...one, isReady: false }))
  t.same(result([service('a', { ips: ['192.168.1.2'] })], down)['shop/a']?.ips, ['192.168.1.2'])
  t.same(result([service('a')], down)['shop/a'], { ips: [] })
})

test('a Service has the addresses of a bounded number of nodes, the same ones again', async (t) => {
  const many = Array.from({ length: mostNodeAddresses + 20 }, (_, index) => node(index + 1))
  const last = `192.168.1.${many.length}`
  const found = result([service('a', { ips: [last] })], many)['shop/a']?.ips ?? []
  t.equal(found.length, mostNodeAddresses)
  t.ok(found.includes(last))
  t.same(result([service('a', { ips: found })], [...many].reverse())['shop/a']?.ips, found)
})

test('of many Services with one port, each that gets no address has the reason', async (t) => {
  const all = Array.from({ length: 20 }, (_, index) => service(`web-${index + 10}`))
  const given = Object.values(result(all))
  t.match(given[0], { ips: ['192.168.1.1', '192.168.1.2'] })
  for (const one of given.slice(1)) t.match(one, { ips: [], problem: /^Port TCP\/80 is in use on every node/ })
})
