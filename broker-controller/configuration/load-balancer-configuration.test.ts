import { test } from 'tap'
import { type LoadBalancerFields, loadBalancerSettings } from './load-balancer-configuration.ts'

const around = {
  nodeCidrs: { clusterCIDR: '10.244.0.0/16' },
  serviceCIDR: '10.96.0.0/12',
  controllerHosts: [undefined, '192.168.1.10', 'controller.lan'],
  controllerPorts: [6443, 8883],
  tunnelPorts: [8472],
}
const read = (file: LoadBalancerFields) => {
  const problems: string[] = []
  return { settings: loadBalancerSettings(file, around, problems), problems }
}
const withPool = (...loadBalancerPool: readonly string[]) => read({ podNetwork: 'routed', loadBalancerPool })

test('a fleet with a network has load balancers: of its pool, or of its nodes', async (t) => {
  t.same(read({ podNetwork: 'node' }), { settings: { mode: 'none' }, problems: [] })
  t.same(read({ podNetwork: 'routed' }), {
    settings: { mode: 'nodes', keptPorts: new Set(['TCP/22', 'TCP/6443', 'TCP/8883', 'UDP/8472']) },
    problems: [],
  })
  t.same(read({ podNetwork: 'routed', loadBalancer: 'none' }), { settings: { mode: 'none' }, problems: [] })
  const { settings, problems } = withPool('192.168.1.240-192.168.1.250', '192.168.2.0/28')
  t.match(settings, { mode: 'pool', pool: [{ text: '192.168.1.240-192.168.1.250' }, { text: '192.168.2.0/28' }] })
  t.same(problems, [])
})

test('each problem has its field, its value and a remedy', async (t) => {
  const remedy = 'choose addresses of your network that its DHCP server does not assign'
  t.same(withPool('some').problems, [
    'loadBalancerPool: "some" must be an IPv4 range (like 192.168.1.240-192.168.1.250 or 192.168.2.0/28)',
  ])
  t.same(withPool().problems, [
    'loadBalancerPool: must have at least one range with loadBalancer: pool (like 192.168.1.240-192.168.1.250)',
  ])
  t.same(withPool('10.244.1.0/28').problems, [
    `loadBalancerPool: 10.244.1.0/28 must not overlap clusterCIDR 10.244.0.0/16: ${remedy}`,
  ])
  t.same(withPool('10.100.0.1-10.100.0.9').problems, [
    `loadBalancerPool: 10.100.0.1-10.100.0.9 must not overlap serviceCIDR 10.96.0.0/12: ${remedy}`,
  ])
  t.same(withPool('192.168.1.9-192.168.1.20').problems, [
    `loadBalancerPool: 192.168.1.9-192.168.1.20 must not have 192.168.1.10, an address of the controller: ${remedy}`,
  ])
  t.match(withPool('239.1.1.0/28').problems, [/must not overlap 224.0.0.0\/3, whose addresses no machine has/])
  t.same(withPool('192.168.2.0/28', '192.168.2.9').problems, [
    'loadBalancerPool: 192.168.2.9 must not overlap 192.168.2.0/28: remove one of them, or make it smaller',
  ])
  t.match(withPool('172.16.0.0/16').problems, [/^loadBalancerPool: 65536 addresses must be at most 4096/])
  t.same(read({ podNetwork: 'routed', loadBalancer: 'nodes', loadBalancerPool: ['192.168.2.9'] }).problems, [
    'loadBalancerPool: not used with loadBalancer: nodes; remove one of them',
  ])
  t.match(read({ podNetwork: 'node', loadBalancerPool: ['192.168.2.9'] }).problems, [
    /^loadBalancerPool: 192\.168\.2\.9 needs podNetwork: routed, .*: set it, or remove loadBalancerPool$/,
  ])
  t.match(read({ podNetwork: 'node', loadBalancer: 'nodes' }).problems, [
    /^loadBalancer: nodes needs podNetwork: routed, .*: set it, or remove loadBalancer$/,
  ])
})

const dual = {
  ...around,
  ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' },
  controllerHosts: ['fd00:9::10'],
}
const problemsOf = (...loadBalancerPool: readonly string[]) => {
  const problems: string[] = []
  loadBalancerSettings({ podNetwork: 'routed', loadBalancerPool }, dual, problems)
  return problems
}

test('a pool may have IPv6 addresses, in a fleet that has them', async (t) => {
  t.same(problemsOf('192.168.1.240-192.168.1.250', 'fd00:9::240-fd00:9::250', '2001:db8::/120'), [])
  t.match(withPool('fd00:9::240').problems, [
    /^loadBalancerPool: fd00:9::240 has IPv6 addresses, which Services of this fleet do not have: add an IPv6 range/,
  ])
})

test('each problem of an IPv6 range has its value and a remedy', async (t) => {
  for (const text of ['fd00:9::1-192.168.1.9', 'fd00:9::2-fd00:9::1', 'fd00:9::1/120', 'fd00:9::1%eth0']) {
    t.same(problemsOf(text), [
      `loadBalancerPool: "${text}" must be a range of addresses of one family (like fd00:9::240-fd00:9::250 or fd00:9::2:0/120)`,
    ])
  }
  t.match(problemsOf('fd00:10:244::/120'), [/must not overlap clusterCIDR fd00:10:244::\/56: choose/])
  t.match(problemsOf('fd00:10:96::9'), [/must not overlap serviceCIDR fd00:10:96::\/112: choose/])
  t.match(problemsOf('fd00:9::/120'), [/must not have fd00:9::10, an address of the controller: choose/])
  for (const text of ['fe80::240', '::1', 'ff02::1', '::ffff:192.168.1.9']) {
    t.match(problemsOf(text), [/must be of 2000::\/3 or fc00::\/7, the addresses of single machines: choose/])
  }
  t.match(problemsOf('fd00:8::/64'), [/^loadBalancerPool: 18446744073709551616 IPv6 addresses must be at most 4096/])
  t.match(problemsOf('fd00:8::/120', 'fd00:8::9'), [/fd00:8::9 must not overlap fd00:8::\/120: remove one/])
})
