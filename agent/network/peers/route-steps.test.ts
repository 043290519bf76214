import { test } from 'tap'
import { parseCidr } from '../../../api/text/cidr.ts'
import type { PeerNetwork } from './family-network.ts'
import type { HostRoute } from './host-routes.ts'
import { afterSteps, type HostLinks, type MadeRoutes, planRoutes } from './route-steps.ts'
import type { PodRoute, TunnelPeer } from './tunnels.ts'

const second: PodRoute = { range: '10.244.2.0/24', gateway: '192.168.1.2' }
const far: PodRoute = { range: '10.244.3.0/24', gateway: '10.244.3.0', device: 'bramble-vxlan' }
const farEnd = { address: '10.244.3.0', mac: '02:62:0a:f4:03:00', node: '172.16.0.3' }
const ownEnd = { address: '10.244.1.0', mac: '02:62:0a:f4:01:00' }

const wanted = (routes: readonly PodRoute[], peers: readonly TunnelPeer[] = [farEnd]): PeerNetwork => ({
  address: '192.168.1.1',
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  podCIDR: '10.244.1.0/24',
  nodeAddresses: [],
  routes,
  tunnel: routes.includes(far) ? { kind: 'vxlan', ...ownEnd, peers } : undefined,
  isGuarded: false,
  relays: new Map(),
  gaps: [],
})
const nothing: MadeRoutes = { routes: [], tunnelPeers: [] }

function inKernel({ range, gateway, device }: PodRoute, more: Partial<HostRoute> = {}): HostRoute {
  const parsed = parseCidr(range)
  if (parsed === undefined) throw new Error(`Not a range: ${range}`)
  return { interface: device ?? 'eth0', range: parsed, gateway, metric: 0, ...more }
}
const host = (routes: readonly HostRoute[], hasTunnel = false): HostLinks => ({
  routes,
  hasTunnel,
  hasWireguard: false,
})

test('a missing route is added, and one that is there needs no step', async (t) => {
  t.same(planRoutes(wanted([second]), nothing, host([])).steps, [{ step: 'addRoute', route: second }])
  t.same(planRoutes(wanted([second]), nothing, host([inKernel(second)])), {
    steps: [],
    inTheWay: [],
    ipv6InTheWay: [],
    overlaps: [],
  })
  const made = { ...nothing, routes: [second] }
  t.same(planRoutes(wanted([second]), made, host([])).steps, [{ step: 'addRoute', route: second }], 'its link was down')
})

test('a node with another address gets another route in place of the last one', async (t) => {
  const moved = { ...second, gateway: '192.168.1.9' }
  const made = { ...nothing, routes: [second] }
  t.same(planRoutes(wanted([moved]), made, host([inKernel(second)])).steps, [
    { step: 'removeRoute', route: second },
    { step: 'addRoute', route: moved },
  ])
})

test('only routes that were made are removed', async (t) => {
  const other = inKernel({ range: '10.244.9.0/24', gateway: '192.168.1.9' })
  const made = { ...nothing, routes: [second] }
  t.same(planRoutes(undefined, made, host([inKernel(second), other])).steps, [{ step: 'removeRoute', route: second }])
  t.same(planRoutes(undefined, made, host([other])).steps, [], 'one that is gone is not removed again')
})

test('a route of others for the range of a node stays and is named', async (t) => {
  const foreign = inKernel({ ...second, gateway: '192.168.1.77' }, { interface: 'eth7' })
  const plan = planRoutes(wanted([second]), nothing, host([foreign]))
  t.same(plan.steps, [])
  t.match(plan.inTheWay, [/10\.244\.2\.0\/24 on eth7/])
  const { gateway: _, ...direct } = foreign
  t.same(planRoutes(wanted([second]), nothing, host([direct])).steps, [])
  t.equal(
    planRoutes(wanted([second]), nothing, host([{ ...foreign, metric: 100 }])).steps.length,
    1,
    'the kernel prefers ours',
  )
})

test('the tunnel is opened before routes lead into it, and closed with its last one', async (t) => {
  t.same(planRoutes(wanted([far]), nothing, host([])).steps, [
    { step: 'openTunnel', ...ownEnd, mtu: 1450 },
    { step: 'addTunnelPeer', peer: farEnd },
    { step: 'addRoute', route: far },
  ])
  const made = { routes: [far], tunnelPeers: [farEnd] }
  t.same(planRoutes(wanted([far]), made, host([inKernel(far)], true)).steps, [])
  t.same(planRoutes(wanted([second]), made, host([inKernel(far), inKernel(second)], true)).steps, [
    { step: 'removeRoute', route: far },
    { step: 'closeTunnel' },
  ])
})

test('an agent that starts again, or a tunnel that was removed, sets all peers of the tunnel', async (t) => {
  const restarted = planRoutes(wanted([far]), { routes: [far], tunnelPeers: [] }, host([inKernel(far)], true)).steps
  t.same(
    restarted.map(({ step }) => step),
    ['openTunnel', 'addTunnelPeer'],
  )
  const removed = planRoutes(wanted([far]), { routes: [far], tunnelPeers: [farEnd] }, host([])).steps
  t.same(
    removed.map(({ step }) => step),
    ['openTunnel', 'addTunnelPeer', 'addRoute'],
  )
})

test('a peer of the tunnel that has moved is replaced', async (t) => {
  const moved = { ...farEnd, node: '172.16.0.9' }
  const made = { routes: [far], tunnelPeers: [farEnd] }
  t.same(planRoutes(wanted([far], [moved]), made, host([inKernel(far)], true)).steps, [
    { step: 'removeTunnelPeer', peer: farEnd },
    { step: 'addTunnelPeer', peer: moved },
  ])
})

test('what failed is not made', async (t) => {
  const add = { step: 'addRoute', route: second } as const
  const peer = { step: 'addTunnelPeer', peer: farEnd } as const
  const remove = { step: 'removeRoute', route: second } as const
  t.same(afterSteps(nothing, [add, peer], []), { routes: [second], tunnelPeers: [farEnd] })
  t.same(afterSteps(nothing, [add, peer], [{ step: add }]), { routes: [], tunnelPeers: [farEnd] })
  t.same(afterSteps({ routes: [second], tunnelPeers: [farEnd] }, [remove, { step: 'closeTunnel' }], []), nothing)
  t.same(afterSteps({ routes: [second], tunnelPeers: [] }, [remove], [{ step: remove }]).routes, [second])
  t.same(afterSteps({ ...nothing, tunnelPeers: [farEnd] }, [{ step: 'removeTunnelPeer', peer: farEnd }], []), nothing)
})

const third: PodRoute = { range: '10.244.4.0/24', gateway: '192.168.1.4' }
const fifth: PodRoute = { range: '10.244.5.0/24', gateway: '10.244.5.0', device: 'bramble-vxlan' }
const fifthEnd = { address: '10.244.5.0', mac: '02:62:0a:f4:05:00', node: '172.16.0.5' }

test('of several nodes only those that differ are touched', async (t) => {
  const made = { routes: [second, third], tunnelPeers: [] }
  const both = host([inKernel(second), inKernel(third)])
  t.same(planRoutes(wanted([second, third]), made, both).steps, [])
  t.same(planRoutes(wanted([third]), made, both).steps, [{ step: 'removeRoute', route: second }])
  t.same(planRoutes(wanted([second, third]), made, host([inKernel(third)])).steps, [
    { step: 'addRoute', route: second },
  ])
  t.same(
    planRoutes(wanted([second, third]), made, host([inKernel(third), inKernel({ ...second, gateway: third.gateway })]))
      .inTheWay.length,
    1,
    'a route by the gateway of another node',
  )
  t.same(
    planRoutes(
      wanted([second]),
      { ...nothing, routes: [third] },
      host([inKernel({ ...second, gateway: '192.168.1.9' })]),
    ).inTheWay.length,
    1,
    'having made a route to one node does not make that to another ours',
  )
})

test('of several ends of a tunnel only those that differ are touched', async (t) => {
  const peers = [farEnd, fifthEnd]
  const made = { routes: [far, fifth], tunnelPeers: peers }
  const both = host([inKernel(far), inKernel(fifth)], true)
  t.same(planRoutes(wanted([far, fifth], peers), made, both).steps, [])
  t.same(planRoutes(wanted([far], [farEnd]), made, both).steps, [
    { step: 'removeRoute', route: fifth },
    { step: 'removeTunnelPeer', peer: fifthEnd },
  ])
  t.same(
    planRoutes(wanted([far, fifth], peers), { routes: [far], tunnelPeers: [farEnd] }, host([inKernel(far)], true))
      .steps,
    [
      { step: 'addTunnelPeer', peer: fifthEnd },
      { step: 'addRoute', route: fifth },
    ],
  )
  const same = { ...farEnd, mac: fifthEnd.mac }
  t.equal(
    planRoutes(wanted([far], [farEnd]), { routes: [far], tunnelPeers: [same] }, host([inKernel(far)], true)).steps
      .length,
    2,
  )
})

test('a node that moves from a tunnel to the link gets a route there', async (t) => {
  const near = { range: far.range, gateway: far.gateway }
  const made = { routes: [far], tunnelPeers: [farEnd] }
  t.same(
    planRoutes(wanted([near]), made, host([inKernel(far)], true)).steps.map(({ step }) => step),
    ['removeRoute', 'closeTunnel', 'addRoute'],
  )
  const back = planRoutes(wanted([far]), { ...nothing, routes: [near] }, host([inKernel(near)]))
  t.same(
    back.steps.map(({ step }) => step),
    ['removeRoute', 'openTunnel', 'addTunnelPeer', 'addRoute'],
  )
})

test('steps leave what else was made as it is', async (t) => {
  const made = { routes: [second, third], tunnelPeers: [farEnd, fifthEnd] }
  t.same(afterSteps(made, [{ step: 'removeRoute', route: second }], []).routes, [third])
  t.same(afterSteps(made, [{ step: 'removeTunnelPeer', peer: farEnd }], []).tunnelPeers, [fifthEnd])
  t.same(afterSteps(made, [{ step: 'addRoute', route: far }], []), { ...made, routes: [second, third, far] })
  t.same(afterSteps(made, [{ step: 'openTunnel', ...ownEnd, mtu: 1450 }], []), { ...made, tunnelPeers: [] })
  t.same(afterSteps(made, [], []), made)
})

const encrypted = (...routes: readonly PodRoute[]): PeerNetwork => ({
  ...wanted(routes),
  tunnel: { kind: 'wireguard', address: '10.244.1.0', port: 51_871, peers: [] },
  isGuarded: true,
})
const byWireguard: PodRoute = { ...far, device: 'bramble-wg' }
const guard = { interface: '*', range: { first: 0x0a_f4_00_00, bits: 16 }, metric: 1 }
const stepsOf = (plan: { readonly steps: readonly { readonly step: string }[] }) => plan.steps.map(({ step }) => step)

test('a tunnel has the MTU of its link, and follows it while it is open', async (t) => {
  const one = wanted([far])
  const made = { ...nothing, routes: [far], tunnelPeers: [farEnd] }
  const open = host([inKernel(far)], true)
  const steps = (links: Partial<HostLinks>, network: PeerNetwork | undefined = one) =>
    planRoutes(network, made, { ...open, ...links }).steps
  t.match(steps({ hasTunnel: false, routes: [], linkMtu: 1400 }), [{ step: 'openTunnel', mtu: 1350 }, {}, {}])
  const vxlan = (mtu: number) => ({ 'bramble-vxlan': mtu })
  t.same(steps({ linkMtu: 1400, tunnelMtus: vxlan(1450) }), [
    { step: 'setTunnelMtu', device: 'bramble-vxlan', mtu: 1350 },
  ])
  t.same(steps({ linkMtu: 1500, tunnelMtus: vxlan(1350) }), [
    { step: 'setTunnelMtu', device: 'bramble-vxlan', mtu: 1450 },
  ])
  t.same(steps({ linkMtu: 1400, tunnelMtus: vxlan(1350) }), [])
  t.same(steps({ tunnelMtus: vxlan(1350) }), [], 'its link is not known')
  t.same(steps({ linkMtu: 1400 }), [], 'that of the tunnel is not known')
  t.same(steps({ linkMtu: 1400, hasTunnel: false, routes: [], tunnelMtus: vxlan(1450) }).length, 3, 'it is opened')

  const wireguard = { ...made, routes: [byWireguard], wireguardAddress: '10.244.1.0', guards: ['10.244.0.0/16'] }
  const links = { ...host([guard, inKernel(byWireguard)]), hasWireguard: true, linkMtu: 1400 }
  const tunnelMtus = { 'bramble-wg': 1420 }
  t.same(planRoutes(encrypted(byWireguard), wireguard, { ...links, tunnelMtus }).steps, [
    { step: 'setTunnelMtu', device: 'bramble-wg', mtu: 1320 },
  ])
  const opened = planRoutes(encrypted(byWireguard), nothing, { ...links, hasWireguard: false, routes: [] }).steps
  t.match(opened, [{ step: 'addGuard' }, { step: 'openWireguard', mtu: 1320 }, { step: 'addRoute' }])
})

test('WireGuard is opened where a route needs it, and packets without a route are refused before that', async (t) => {
  t.same(planRoutes(encrypted(byWireguard), nothing, host([])).steps, [
    { step: 'addGuard', range: '10.244.0.0/16' },
    { step: 'openWireguard', address: '10.244.1.0', mtu: 1420 },
    { step: 'addRoute', route: byWireguard },
  ])
  t.same(
    stepsOf(planRoutes(encrypted(second), nothing, host([]))),
    ['addGuard', 'addRoute'],
    'on one segment it is not',
  )
  const byRelay = { ...second, range: '10.244.9.0/24', source: '10.244.1.0' }
  t.ok(stepsOf(planRoutes(encrypted(byRelay), nothing, host([]))).includes('openWireguard'))
  const open = { ...host([guard, inKernel(byWireguard)]), hasWireguard: true }
  const made = { ...nothing, wireguardAddress: '10.244.1.0', guards: ['10.244.0.0/16'] }
  t.same(planRoutes(encrypted(byWireguard), made, open).steps, [])
  t.same(
    planRoutes(encrypted(byWireguard), { ...made, wireguardAddress: '10.244.7.0' }, open).steps,
    [{ step: 'openWireguard', address: '10.244.1.0', mtu: 1420 }],
    'its address has changed',
  )
  t.same(planRoutes(encrypted(), made, { ...open, routes: [guard] }).steps, [], 'once open it stays')
})

test('an interface and refusals that an agent has made are removed, and those of others are not', async (t) => {
  const open = { ...host([guard]), hasWireguard: true }
  const made = { ...nothing, wireguardAddress: '10.244.1.0', guards: ['10.244.0.0/16'] }
  for (const next of [undefined, wanted([])]) {
    t.same(planRoutes(next, made, open).steps, [
      { step: 'removeGuard', range: '10.244.0.0/16' },
      { step: 'closeWireguard' },
    ])
    t.same(planRoutes(next, nothing, open).steps, [])
    t.same(planRoutes(next, made, host([])).steps, [], 'they are gone')
  }
})

test('what was made of WireGuard is kept in mind', async (t) => {
  const open = { step: 'openWireguard', address: '10.244.1.0', mtu: 1420 } as const
  const refuse = { step: 'addGuard', range: '10.244.0.0/16' } as const
  const made = { ...nothing, wireguardAddress: '10.244.1.0', guards: ['10.244.0.0/16'] }
  t.same(afterSteps(nothing, [open, refuse], []), made)
  t.same(afterSteps(nothing, [open, refuse], [{ step: open }, { step: refuse }]), nothing)
  const close = [{ step: 'closeWireguard' }, { step: 'removeGuard', range: '10.244.0.0/16' }] as const
  t.same(afterSteps(made, close, []), nothing)
})

const near6: PodRoute = { range: 'fd00:10:244:2::/64', gateway: 'fd00:1::2' }
const far6: PodRoute = { range: 'fd00:10:244:3::/64', gateway: 'fd00:10:244:3::', device: 'bramble-vxlan' }
const withIPv6 = (network: PeerNetwork, ...routes: readonly PodRoute[]): PeerNetwork => ({
  ...network,
  ipv6: {
    ...{ clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112', podCIDR: 'fd00:10:244:1::/64' },
    ...{ nodeAddresses: [], routes },
  },
  tunnel: network.tunnel && { ...network.tunnel, ipv6: 'fd00:10:244:1::' },
})

test('IPv6 routes are made beside those of IPv4, and a foreign one stays', async (t) => {
  const network = withIPv6(wanted([second]), near6)
  const there = { interface: 'eth0', range: near6.range, gateway: 'fd00:1::2', metric: 1024 }
  const links = (...ipv6Routes: readonly (typeof there)[]) => ({ ...host([inKernel(second)]), ipv6Routes })
  const made = { ...nothing, routes: [second, near6] }
  t.same(planRoutes(network, nothing, links()).steps, [{ step: 'addRoute', route: near6 }])
  t.same(planRoutes(network, made, links(there)).steps, [])
  t.same(planRoutes(wanted([second]), made, links(there)).steps, [{ step: 'removeRoute', route: near6 }])
  const foreign = planRoutes(network, nothing, links({ ...there, gateway: 'fd00:1::9' }))
  t.same([foreign.steps, foreign.inTheWay], [[], []])
  t.match(foreign.ipv6InTheWay, [/^the route to fd00:10:244:2::\/64 on eth0 is not Bramble's/])
})

test('networks of the machine with addresses of the fleet are named, of IPv6 where its pods have some', async (t) => {
  const home = parseCidr('10.96.3.0/24')
  const [link4, link6] = [
    home === undefined ? [] : [{ interface: 'eth0', range: home }],
    [{ interface: 'eth0', range: 'fd00:10:244:9::/64' }],
  ]
  const links: HostLinks = { ...host(link4), ipv6Routes: link6 }
  t.match(planRoutes(withIPv6(wanted([])), nothing, links).overlaps, [
    /serviceCIDR 10\.96/,
    /clusterCIDR fd00:10:244::/,
  ])
  t.match(planRoutes(wanted([]), nothing, links).overlaps, [/serviceCIDR 10\.96/])
  t.same(planRoutes(undefined, nothing, links).overlaps, [])
})

test('a tunnel gets its IPv6 address when it is opened, and later without being opened again', async (t) => {
  const network = withIPv6(wanted([far], [{ ...farEnd, ipv6: 'fd00:10:244:3::' }]), far6)
  const address = { device: 'bramble-vxlan', address: 'fd00:10:244:1::' } as const
  const steps = (...of: Parameters<typeof planRoutes>) => planRoutes(...of).steps.map(({ step }) => step)
  t.same(steps(network, nothing, host([])), ['openTunnel', 'addTunnelPeer', 'addTunnelIPv6', 'addRoute', 'addRoute'])
  const before: MadeRoutes = { ...nothing, routes: [far], tunnelPeers: [farEnd], tunnelAddress: ownEnd.address }
  const later = planRoutes(network, before, host([inKernel(far)], true)).steps
  t.same(
    later.map(({ step }) => step),
    ['removeTunnelPeer', 'addTunnelPeer', 'addTunnelIPv6', 'addRoute'],
  )
  const made = afterSteps(before, later, [])
  t.same(made.tunnelIPv6, { 'bramble-vxlan': 'fd00:10:244:1::' })
  const there = { interface: 'bramble-vxlan', range: far6.range, gateway: far6.gateway, metric: 1024 }
  const links = { ...host([inKernel(far)], true), ipv6Routes: [there] }
  t.same(planRoutes(network, made, links).steps, [])
  const off = planRoutes(wanted([far]), made, links).steps
  t.match(off, [{ step: 'removeRoute', route: far6 }, {}, {}, { step: 'removeTunnelIPv6', ...address }])
  t.equal(afterSteps(made, off, []).tunnelIPv6, undefined)
  t.equal(afterSteps(made, [{ step: 'closeTunnel' }], []).tunnelIPv6, undefined)
})
