import { type Test, test } from 'tap'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import type { NodeStatus } from '../../../api/node.ts'
import { formatCidr, parseCidr } from '../../../api/text/cidr.ts'
import { byFamily } from '../../../api/text/ip-address.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { MachineCondition } from '../../node/status/conditions.ts'
import { areSameProofs, noProofs } from '../probes/proven-network.ts'
import type { RuleSet } from '../rule-set.ts'
import { fakeWireguard } from '../testing/wireguard.ts'
import type { HostRoute, RouteStep } from './host-routes.ts'
import { peersManager } from './peers-manager.ts'
import type { MadeRoutes } from './route-steps.ts'
import type { StepFailure } from './route-sync.ts'

const peer = (number: number): NetworkPeer => ({
  name: `pi-${number}`,
  podCIDR: `10.244.${number}.0/24`,
  address: `192.168.1.${number}`,
  segment: 'lan',
})
const message = (...numbers: readonly number[]): NetworkMessage => ({
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: numbers.map(peer),
})

/** A machine with routes, whose gateways may be refused. */
function running(t: Test, first?: NetworkMessage, left: MadeRoutes['routes'] = []) {
  let routes: HostRoute[] = left.map(({ range, gateway }) => routeOf(range, gateway))
  const world = {
    steps: [] as string[],
    refused: new Set<string>(),
    isAccepting: false,
    isIPv6Closed: false,
    forwardsIPv6: false,
    ipv6Problem: undefined as string | undefined,
    dockerProblem: undefined as string | undefined,
    adjusted: 0,
    /** How often Docker's rules were looked at. */
    asked: 0,
    /** Pending read of the machine's links. */
    reading: Promise.resolve(),
    isEngineDown: false,
    hasWireguard: false,
    /** The kernel has no WireGuard. */
    noWireguard: false,
    /** MTUs of the link with the node's address and of the tunnel. */
    mtus: new Map<string, number>(),
    ranges: () => routes.map(({ range }) => formatCidr(range)),
    linkDown() {
      routes = []
    },
    linkUp(text: string, device?: string) {
      const { gateway: _, ...direct } = routeOf(text, '', device)
      routes = [direct]
    },
  }
  const networkMessage = cell(first)
  const networkCurrent = cell(false)
  const networkObstacle = cell<unknown>(undefined)
  const ruleProblem = byFamily(() => cell<string | undefined>(undefined))
  const ruleRemovals = byFamily(() => cell(0))
  const runtime = cell<{ readonly info?: { readonly firewallBackend?: string } }>({})
  const nodeStatus = cell<NodeStatus | undefined>(undefined)
  const peerRules = byFamily(() => cell<RuleSet | undefined>(undefined))
  const networkConditions = cell<readonly MachineCondition[]>([])
  const routesApplied = cell(false)
  const podsMayMove = cell(false)
  const cells = {
    addressProofs: cell(noProofs, areSameProofs),
    ...{ networkMessage, networkCurrent, networkObstacle, ruleProblem, ruleRemovals, runtime, nodeStatus },
    ...{ podLink: cell<string | undefined>(undefined) },
    ...{ peerRules, networkConditions, routesApplied, podsMayMove },
  }
  const wireguard = fakeWireguard()
  const clock = fakeClock()
  const end = new AbortController()
  const take = (step: RouteStep): StepFailure[] => {
    switch (step.step) {
      case 'addRoute':
        if (world.refused.has(step.route.gateway)) return [{ step, because: 'Nexthop has invalid gateway.' }]
        routes = [...routes, routeOf(step.route.range, step.route.gateway, step.route.device)]
        return []
      case 'removeRoute':
        routes = routes.filter(({ gateway }) => gateway !== step.route.gateway)
        return []
      case 'openWireguard':
        world.hasWireguard = !world.noWireguard
        return world.noWireguard ? [{ step, because: 'The kernel has no WireGuard' }] : []
      case 'closeWireguard':
        world.hasWireguard = false
        return []
      case 'setTunnelMtu':
        world.mtus.set(step.device, step.mtu)
        return []
      case 'addGuard':
        routes = [...routes, routeOf(step.range, '', '*')]
        return []
      case 'removeGuard':
        routes = routes.filter((route) => route.interface !== '*')
        return []
      default:
        return []
    }
  }
  const { run } = peersManager(
    {
      host: {
        async links(_withIPv6, address = '') {
          await world.reading
          const links = { routes, hasTunnel: false, hasWireguard: world.hasWireguard }
          const [linkMtu, mtu] = [world.mtus.get(address), world.mtus.get('bramble-wg')]
          return linkMtu === undefined || mtu === undefined
            ? links
            : { ...links, linkMtu, tunnelMtus: { 'bramble-wg': mtu } }
        },
        made: async () => ({ routes: left, tunnelPeers: [] }),
        async apply(steps) {
          world.steps.push(...steps.map(({ step }) => step))
          return steps.flatMap(take)
        },
        async acceptMarked() {
          world.asked++
          if (world.dockerProblem !== undefined) throw new Error(world.dockerProblem)
          world.isAccepting = true
        },
        async refuseMarked() {
          world.isAccepting = false
        },
      },
      wireguard,
      hasIPv6: true,
      ipv6Forwarding: {
        async enable() {
          world.forwardsIPv6 = true
        },
        async restore() {
          world.forwardsIPv6 = false
        },
      },
      bridge: {
        async adjust() {
          if (world.isEngineDown) throw new Error('Docker did not answer')
          world.adjusted++
        },
      },
      ipv6: {
        async verify() {
          if (world.ipv6Problem !== undefined) throw new Error(world.ipv6Problem)
          world.isIPv6Closed = true
        },
        async remove() {
          world.isIPv6Closed = false
        },
      },
      reads: cells,
      writes: cells,
      clock,
      log: quietLog(t),
    },
    { nodeName: 'pi-1' },
  )
  const ended = run(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  return { ...cells, world, wireguard, clock }
}

function routeOf(text: string, gateway: string, device = 'eth0'): HostRoute {
  const range = parseCidr(text)
  if (range === undefined) throw new Error(`Not a range: ${text}`)
  return { interface: device, range, gateway, metric: 0 }
}

test('a fleet without a network costs nothing', async (t) => {
  const { world, peerRules, networkConditions, clock } = running(t)
  await clock.advance(120_000)
  t.match(world, { steps: [], isAccepting: false, adjusted: 0 })
  t.equal(peerRules.IPv4.get(), undefined)
  t.same(networkConditions.get(), [])
})

test('pods of a node that is off the network of its fleet leave the one they are on', async (t) => {
  const { world, networkObstacle, networkCurrent, podsMayMove, clock } = running(t)
  networkObstacle.set({ reason: 'OtherAgent' })
  await clock.settle()
  t.equal(world.adjusted, 0, 'not before the controller has answered')
  networkCurrent.set(true)
  await clock.settle()
  t.equal(world.adjusted, 1)
  t.equal(podsMayMove.get(), true)
  networkObstacle.set({ reason: 'FirewallBackend' })
  await clock.settle()
  t.equal(world.adjusted, 2, 'also where it is known already that there is none')
})

test('a message brings rules, routes and the place among the rules of Docker', async (t) => {
  const { world, peerRules, networkConditions, routesApplied, clock } = running(t, message(1, 2, 3))
  t.ok(peerRules.IPv4.get(), 'the rules are wanted at once')
  t.equal(routesApplied.get(), false)
  await clock.settle()
  t.same(world.ranges(), ['10.244.2.0/24', '10.244.3.0/24'])
  t.equal(world.isAccepting, true)
  t.equal(routesApplied.get(), true)
  t.match(networkConditions.get(), [{ type: 'NetworkUnavailable', status: 'False' }])
  t.equal(world.adjusted, 1)
  await clock.advance(300_000)
  t.equal(world.adjusted, 1, 'the engine is asked after changes only')
})

test('routes of an agent that ran before are taken over or removed', async (t) => {
  const left = [
    { range: '10.244.2.0/24', gateway: '192.168.1.2' },
    { range: '10.244.9.0/24', gateway: '192.168.1.9' },
  ]
  const { world, clock } = running(t, message(1, 2), left)
  await clock.settle()
  t.same(world.steps, [], 'the checkpoint may be older than they are')
  await clock.advance(8_000)
  t.same(world.steps, ['removeRoute'], 'there is no controller')
  t.same(world.ranges(), ['10.244.2.0/24'])
})

test('a route that an earlier agent made after it had saved the checkpoint is there all the time', async (t) => {
  const left = [
    { range: '10.244.2.0/24', gateway: '192.168.1.2' },
    { range: '10.244.9.0/24', gateway: '192.168.1.9' },
  ]
  const { world, networkMessage, networkCurrent, routesApplied, clock } = running(t, message(1, 2), left)
  await clock.settle()
  networkMessage.set({ ...message(1, 2, 9, 3), version: 2 })
  networkCurrent.set(true)
  await clock.settle()
  t.same(world.steps, ['addRoute'])
  t.same(world.ranges(), ['10.244.2.0/24', '10.244.9.0/24', '10.244.3.0/24'])
  t.equal(routesApplied.get(), true, 'and no time is waited for')
})

test('what an earlier agent made is removed when the controller has no network by now', async (t) => {
  const left = [{ range: '10.244.2.0/24', gateway: '192.168.1.2' }]
  const { world, networkMessage, networkCurrent, clock } = running(t, message(1, 2), left)
  await clock.settle()
  networkCurrent.set(true)
  networkMessage.set(undefined)
  await clock.settle()
  t.same(world.steps, ['removeRoute'])
  t.equal(world.adjusted, 1, 'and pods leave its network')
})

test('routes that went with a link are back within 5 s', async (t) => {
  const { world, clock } = running(t, message(1, 2))
  await clock.settle()
  world.linkDown()
  await clock.advance(5_000)
  t.same(world.ranges(), ['10.244.2.0/24'])
})

test('the rules name the bridge of the pods while a route of this machine leads there', async (t) => {
  const { world, peerRules, clock } = running(t, message(1, 2))
  const named = () =>
    peerRules.IPv4.get()
      ?.chains.get('peers-forward')
      ?.rules[0]?.match(/iifname != "(.*?)"/)?.[1]
  await clock.settle()
  t.equal(named(), undefined, 'no pod has run yet')
  for (const [device, expected] of [
    ['br-0123456789ab', 'br-0123456789ab'],
    ['eth0', undefined],
    ['br-ba9876543210', 'br-ba9876543210'],
  ] as const) {
    world.linkUp('10.244.1.0/24', device)
    await clock.advance(5_000)
    t.equal(named(), expected, device)
  }
  world.linkDown()
  await clock.advance(5_000)
  t.equal(named(), undefined)
})

test('a message that arrives while the links of the machine are read keeps its rules', async (t) => {
  const { world, networkMessage, peerRules, clock } = running(t, message(1, 2))
  await clock.settle()
  world.linkUp('10.244.1.0/24', 'br-0123456789ab')
  let read = () => {}
  world.reading = new Promise((resolve) => {
    read = resolve
  })
  await clock.advance(5_000)
  networkMessage.set({ ...message(1, 2, 3), version: 2 })
  read()
  await clock.settle()
  t.same(
    [...(peerRules.IPv4.get()?.sets.get('nodes')?.elements?.keys() ?? [])],
    [1, 2, 3].map((n) => `192.168.1.${n}`),
  )
})

test('a node that cannot be a gateway is named, and tried again every 30 s', async (t) => {
  const { world, networkConditions, networkMessage, clock } = running(t)
  world.refused.add('192.168.1.3')
  networkMessage.set(message(1, 2, 3))
  await clock.advance(25_000)
  t.equal(world.steps.length, 2, 'once for each')
  t.match(networkConditions.get(), [{ status: 'False', message: /1 other node .*10\.244\.3\.0\/24 .*invalid gateway/ }])
  world.refused.clear()
  await clock.advance(5_000)
  t.same(world.ranges(), ['10.244.2.0/24', '10.244.3.0/24'])
  t.match(networkConditions.get(), [{ message: 'Routes to the pods of 2 other nodes are in place' }])
})

test('a gateway that the machine could not reach is tried again 5 s after the machine has another address', async (t) => {
  const { world, networkMessage, clock } = running(t)
  world.refused.add('192.168.1.2')
  networkMessage.set(message(1, 2))
  await clock.advance(5_000)
  t.same(world.ranges(), [])
  world.refused.clear()
  world.linkUp('192.168.1.0/24')
  await clock.advance(5_000)
  t.same(world.ranges(), ['192.168.1.0/24', '10.244.2.0/24'])
})

test('the condition shows what keeps packets from pods, until it is gone', async (t) => {
  const { world, networkConditions, networkMessage, ruleProblem, runtime, clock } = running(t)
  world.dockerProblem = 'DOCKER-USER is missing'
  networkMessage.set(message(1, 2))
  ruleProblem.IPv4.set('nft is not installed')
  await clock.settle()
  t.match(networkConditions.get(), [{ status: 'True', message: 'DOCKER-USER is missing; nft is not installed' }])
  ruleProblem.IPv4.set(undefined)
  world.dockerProblem = undefined
  runtime.set({})
  await clock.settle()
  t.match(networkConditions.get(), [{ status: 'False' }], 'Docker has started: its rules are looked at again')
  world.isAccepting = false
  runtime.set({ info: { firewallBackend: 'nftables' } })
  await clock.settle()
  t.match(networkConditions.get(), [
    { status: 'True', message: /backend is nftables.* "firewall-backend": "iptables"/ },
  ])
  t.equal(world.isAccepting, false, 'a chain DOCKER-USER that was left is of no use')
  runtime.set({ info: { firewallBackend: 'iptables' } })
  await clock.settle()
  t.match(networkConditions.get(), [{ status: 'False' }])
  networkMessage.set(message(2))
  await clock.settle()
  t.match(networkConditions.get(), [{ status: 'True', message: /has not assigned/ }])
})

test('when the fleet gives its network up, all that was made is removed', async (t) => {
  const { world, networkMessage, peerRules, networkConditions, clock } = running(t, message(1, 2))
  await clock.settle()
  networkMessage.set(undefined)
  await clock.settle()
  t.same(world.ranges(), [])
  t.equal(world.isAccepting, false)
  t.equal(peerRules.IPv4.get(), undefined)
  t.same(networkConditions.get(), [])
  t.equal(world.adjusted, 2, 'pods go to a network of the other mode')
  await clock.advance(120_000)
  t.equal(world.adjusted, 2)
})

test('when a fleet turns its network on, pods of this node move in its turn', async (t) => {
  const { world, networkMessage, podsMayMove, clock } = running(t)
  await clock.settle()
  networkMessage.set({ ...message(0, 2, 1), version: 2 })
  await clock.advance(39_000)
  t.equal(podsMayMove.get(), false, 'two nodes are before it')
  const { adjusted } = world
  await clock.advance(6_000)
  t.equal(podsMayMove.get(), true)
  t.equal(world.adjusted, adjusted + 1, 'at once')
  networkMessage.set(undefined)
  t.equal(podsMayMove.get(), true, 'on a network without its rules pods have no connection')
})

test('an agent that starts with its checkpoint moves pods at once, one without leaves them where they are', async (t) => {
  const { podsMayMove: known } = running(t, message(0, 2, 1))
  t.equal(known.get(), true)
  const { podsMayMove: unknown, clock } = running(t)
  await clock.advance(120_000)
  t.equal(unknown.get(), false)
})

test("Docker's rules are looked at every two minutes, and at once after another program has removed ours", async (t) => {
  const { world, networkMessage, ruleRemovals, clock } = running(t)
  networkMessage.set(message(1, 2))
  await clock.settle()
  const before = world.asked
  await clock.advance(119_000)
  t.equal(world.asked, before)
  await clock.advance(30_000)
  t.equal(world.asked, before + 1)
  ruleRemovals.IPv4.set(1)
  await clock.settle()
  t.equal(world.asked, before + 2)
  world.dockerProblem = 'DOCKER-USER is missing'
  ruleRemovals.IPv6.set(1)
  await clock.settle()
  world.dockerProblem = undefined
  await clock.advance(30_000)
  t.equal(world.asked, before + 4, 'a failure is tried again after 30 s')
})

test('an engine that does not answer is asked again every 30 s, and does not make the network unavailable', async (t) => {
  const { world, networkConditions, networkMessage, clock } = running(t)
  world.isEngineDown = true
  networkMessage.set(message(1, 2))
  await clock.settle()
  t.match(networkConditions.get(), [{ status: 'False' }])
  world.isEngineDown = false
  await clock.advance(30_000)
  t.equal(world.adjusted, 1)
})

test('pods that an earlier agent left on the network which the fleet gave up are moved when the controller has none', async (t) => {
  const { world, networkCurrent, podsMayMove, clock } = running(t)
  await clock.settle()
  world.isEngineDown = true
  networkCurrent.set(true)
  await clock.settle()
  t.equal(podsMayMove.get(), true)
  world.isEngineDown = false
  await clock.advance(30_000)
  t.match(world, { steps: [], adjusted: 1 })
  await clock.advance(120_000)
  t.equal(world.adjusted, 1)
})

const keys = {
  second: 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=',
  third: 'TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0=',
}
const far = (number: number, wireguardKey?: string): NetworkPeer => ({
  ...peer(number),
  segment: `site ${number}`,
  ...(wireguardKey && { wireguardKey }),
})
const encrypted = (...others: readonly NetworkPeer[]): NetworkMessage => ({
  ...message(1),
  wireguard: { port: 51_871 },
  nodes: [peer(1), ...others],
})

test('nodes of other segments become peers of WireGuard, and one that never answers is named', async (t) => {
  const { world, wireguard, networkConditions, clock } = running(t, encrypted(far(2, keys.second), far(3, keys.third)))
  await clock.settle()
  t.same(world.steps, ['addGuard', 'openWireguard', 'addRoute', 'addRoute'])
  t.same([...(wireguard.state?.peers.keys() ?? [])], [keys.second, keys.third])
  t.match(networkConditions.get(), [{ status: 'False', message: 'Routes to the pods of 2 other nodes are in place' }])
  wireguard.contact(keys.second, { handshake: clock.wallMs() / 1000 })
  await clock.advance(30_000)
  t.match(networkConditions.get(), [
    {
      status: 'False',
      message:
        'Routes to the pods of 2 other nodes are in place; node pi-3 has not answered WireGuard at 192.168.1.3:51871 yet',
    },
  ])
})

test('a tunnel follows the MTU of the link with the address of the node within 5 s', async (t) => {
  const { world, clock } = running(t, encrypted(far(2, keys.second)))
  await clock.settle()
  world.steps.length = 0
  world.mtus = new Map([
    ['192.168.1.1', 1400],
    ['bramble-wg', 1420],
  ])
  await clock.advance(5_000)
  t.same(world.steps, ['setTunnelMtu'])
  t.equal(world.mtus.get('bramble-wg'), 1320)
  await clock.advance(60_000)
  t.same(world.steps, ['setTunnelMtu'], 'once')
})

test('without WireGuard in the kernel the network is unavailable, and nothing else takes its place', async (t) => {
  const { world, networkConditions, networkMessage, clock } = running(t)
  world.noWireguard = true
  networkMessage.set(encrypted(far(2, keys.second)))
  await clock.settle()
  t.match(networkConditions.get(), [{ status: 'True', message: /The kernel has no WireGuard/ }])
  t.notOk(world.steps.includes('openTunnel'))
  world.noWireguard = false
  await clock.advance(30_000)
  t.match(networkConditions.get(), [{ status: 'False' }])
})

test('a node without a key, and a key that cannot be made, are in the condition', async (t) => {
  const { wireguard, networkConditions, networkMessage, clock } = running(t, encrypted(far(2), far(3, keys.third)))
  await clock.settle()
  t.match(networkConditions.get(), [
    { status: 'False', message: /1 other node are|1 other node .*; node pi-2 has not reported/ },
  ])
  wireguard.problem = 'the disk is full'
  networkMessage.set(encrypted(far(3, keys.third)))
  await clock.settle()
  t.match(networkConditions.get(), [{ status: 'True', message: 'the disk is full' }])
})

test('back to VXLAN, or to no network, no WireGuard is left', async (t) => {
  const { world, wireguard, networkMessage, clock } = running(t, encrypted(far(2, keys.second)))
  await clock.settle()
  networkMessage.set({ ...message(1), nodes: [peer(1), far(2, keys.second)] })
  await clock.settle()
  t.same(world.steps.slice(3), [
    'removeRoute',
    'removeGuard',
    'openTunnel',
    'addTunnelPeer',
    'closeWireguard',
    'addRoute',
  ])
  t.equal(world.hasWireguard, false)
  t.equal(wireguard.changes.filter(({ change }) => change === 'removePeer').length, 0, 'they go with the interface')
})

test('IPv6 is kept away from pods as long as the fleet has a network', async (t) => {
  const { world, networkMessage, networkConditions, clock } = running(t, message(1, 2))
  await clock.settle()
  t.equal(world.isIPv6Closed, true)
  world.isIPv6Closed = false
  await clock.advance(30_000)
  t.equal(world.isIPv6Closed, true, 'what another program removed is back')
  world.ipv6Problem = 'Cannot keep IPv6 away from pods: Operation not supported'
  await clock.advance(30_000)
  t.match(networkConditions.get(), [{ status: 'True', message: /^Cannot keep IPv6 away from pods: Operation/ }])
  networkMessage.set(undefined)
  await clock.settle()
  t.equal(world.isIPv6Closed, false)
})

test('a node without an IPv4 address reports that, and not that it waits for the controller', async (t) => {
  const { nodeStatus, networkConditions, clock } = running(t, message(2))
  await clock.settle()
  t.match(networkConditions.get(), [{ status: 'True', message: /has not assigned a range/ }])
  nodeStatus.set({ addresses: [{ type: 'InternalIP', address: 'fd00::7' }] })
  await clock.advance(5_000)
  t.match(networkConditions.get(), [{ message: /^This node has no IPv4 address, .*InternalIP fd00::7\): add one/ }])
})

test('a node has a route when its address is proven; until then packets to its pods are refused', async (t) => {
  const probed = { ...message(1), nodes: [peer(1), { ...peer(2), probePort: 8473 }, peer(3)] }
  const { world, networkConditions, peerRules, addressProofs, networkMessage, clock } = running(t, probed)
  const nodes = () => [...(peerRules.IPv4.get()?.sets.get('nodes')?.elements?.keys() ?? [])]
  await clock.settle()
  t.same(world.ranges(), ['10.244.0.0/16', '10.244.3.0/24'], 'the agent of pi-3 is of an earlier version')
  t.same(nodes(), ['192.168.1.1', '192.168.1.3'])
  t.match(networkConditions.get(), [{ status: 'False', message: /^Routes to the pods of 1 other node are in place$/ }])
  addressProofs.set({ used: new Map(), failures: new Map([['pi-2', { why: 'no answer' }]]) })
  await clock.settle()
  t.match(networkConditions.get(), [
    { status: 'False', message: /pods of pi-2, whose address 192.168.1.2 is not proven/ },
  ])
  addressProofs.set({ used: new Map([['pi-2', '192.168.1.2']]), failures: new Map() })
  await clock.settle()
  t.same(world.ranges(), ['10.244.3.0/24', '10.244.2.0/24'])
  t.same(nodes(), ['192.168.1.1', '192.168.1.2', '192.168.1.3'])
  networkMessage.set({ ...probed, nodes: [peer(1), { ...peer(2), probePort: 8473, address: '192.168.1.22' }, peer(3)] })
  await clock.settle()
  t.same(world.ranges(), ['10.244.3.0/24', '10.244.0.0/16'], 'another address needs a proof of its own')
})

test('the far end of a tunnel gets packets when its address is proven', async (t) => {
  const far = { ...peer(2), segment: 'attic', probePort: 8473 }
  const { world, addressProofs, clock } = running(t, { ...message(1), nodes: [peer(1), far] })
  await clock.settle()
  t.same(world.steps, ['addGuard'])
  addressProofs.set({ used: new Map([['pi-2', '192.168.1.2']]), failures: new Map() })
  await clock.settle()
  t.same(world.steps.slice(1), ['removeGuard', 'openTunnel', 'addTunnelPeer', 'addRoute'])
})

test('a node gets IPv6 in its turn, and gives it up in its turn', async (t) => {
  const ranges = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
  const dual = (number: number) => ({ ...peer(number), ipv6: { podCIDR: `fd00:10:244:${number}::/64` } })
  const { world, networkMessage, peerRules, podsMayMove, networkConditions, clock } = running(t, message(2, 1))
  await clock.settle()
  t.equal(podsMayMove.get(), true)
  networkMessage.set({ ...message(), ipv6: ranges, nodes: [dual(2), dual(1)] })
  await clock.settle()
  t.equal(podsMayMove.get(), false, 'pods are started again, as other ones on the network of before')
  t.equal(world.forwardsIPv6, true)
  t.not(peerRules.IPv6.get(), undefined)
  t.match(networkConditions.get(), [{ status: 'False', message: /are not reached by IPv6/ }])
  await clock.advance(20_000)
  t.equal(podsMayMove.get(), true)
  networkMessage.set(message(2, 1))
  await clock.settle()
  t.equal(podsMayMove.get(), false)
  t.equal(world.forwardsIPv6, false)
  t.equal(peerRules.IPv6.get(), undefined)
})
