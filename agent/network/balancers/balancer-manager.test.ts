import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { byFamily } from '../../../api/text/ip-address.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import { noRules, type RuleSet } from '../rule-set.ts'
import { aService } from '../testing/services.ts'
import { balancerManager } from './balancer-manager.ts'

const ip = '192.168.1.240'
const network: NetworkMessage = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.1', segment: 'lan' }],
}

const statesFor = (node: string): ServiceStates => ({
  services: new Map([['shop/web', aService({ type: 'LoadBalancer', loadBalancerIPs: [ip], loadBalancerNode: node })]]),
  changed: ['shop/web'],
  isComplete: true,
})

function running(t: Test) {
  const host = {
    addresses: new Set<string>(),
    rivals: new Map<string, string>(),
    own: new Set<string>(),
    failing: false,
    failingIPv6: false,
    announced: 0,
    cleared: 0,
    askedIPv6: 0,
  }
  const networkMessage = cell<NetworkMessage | undefined>(network)
  const serviceStates = cell<ServiceStates | undefined>(statesFor('pi-1'))
  const appliedRules = { IPv4: cell<readonly RuleSet[]>([noRules]), IPv6: cell<readonly RuleSet[]>([]) }
  const balancerRules = byFamily(() => cell<RuleSet | undefined>(undefined))
  const clock = fakeClock()
  const end = new AbortController()
  const events: string[] = []
  const logged = [
    'Addresses of load balancers are not complete',
    'Another machine answers for the address of a load balancer',
  ]
  const { run } = balancerManager(
    {
      host: {
        held: () => new Set(host.addresses),
        own: () => host.own,
        link: () => ({ device: 'eth0', mac: '02:00:00:00:00:05' }),
        async answers(_, withIPv6) {
          if (withIPv6) host.askedIPv6++
          return host.rivals
        },
        async apply(steps) {
          if (host.failing) throw new Error('ip is not installed')
          if (host.failingIPv6 && steps.some((one) => one.ip.includes(':'))) throw new Error('IPv6 is disabled')
          for (const { step, ip: address } of steps) {
            if (step === 'take') host.addresses.add(address)
            if (step === 'release') host.addresses.delete(address)
            if (step === 'announce') host.announced++
          }
        },
        async clear() {
          host.addresses.clear()
          host.cleared++
        },
      },
      isConnected: () => true,
      event: ({ reason }) => events.push(reason),
      reads: { networkMessage, serviceStates, appliedRules },
      writes: { balancerRules },
      clock,
      log: quietLog(t, ...logged),
    },
    { nodeName: 'pi-1' },
  )
  const ended = run(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  const ofIPv6 = { rules: balancerRules.IPv6, applied: appliedRules.IPv6 }
  return { host, networkMessage, serviceStates, balancerRules: balancerRules.IPv4, ofIPv6, clock, events }
}

test('an address goes to the node that is named, and from it when another one is', async (t) => {
  const { host, serviceStates, balancerRules, clock } = running(t)
  await clock.advance(2_000)
  t.same([...host.addresses], [ip])
  t.equal(host.announced, 1)
  t.same([...(balancerRules.get()?.sets.get('balancer-ips')?.elements ?? [])], [[ip, '']])
  serviceStates.set(statesFor('pi-2'))
  await clock.settle()
  t.same([...host.addresses], [])
  t.equal(balancerRules.get(), noRules)
  t.equal(host.cleared, 1)
})

test('an address stays while the Services are not all known, and goes with the network', async (t) => {
  const { host, serviceStates, networkMessage, balancerRules, clock } = running(t)
  await clock.advance(2_000)
  serviceStates.set({ services: new Map(), changed: [], isComplete: false })
  await clock.advance(5_000)
  t.same([...host.addresses], [ip])
  networkMessage.set(undefined)
  await clock.settle()
  t.same([...host.addresses], [])
  t.equal(balancerRules.get(), undefined)
})

test('a machine that goes on to answer is an Event of the node, once', async (t) => {
  const { host, clock, events } = running(t)
  host.rivals.set(ip, '02:00:00:00:00:09')
  await clock.advance(40_000)
  t.same(events, [])
  await clock.advance(300_000)
  t.same(events, ['LoadBalancerAddressInUse'])
  t.same([...host.addresses], [])
  host.rivals.clear()
  await clock.advance(15_000)
  t.same([...host.addresses], [ip])
})

test('what fails is tried again', async (t) => {
  const { host, clock } = running(t)
  host.failing = true
  await clock.advance(5_000)
  t.same([...host.addresses], [])
  host.failing = false
  await clock.advance(4_000)
  t.same([...host.addresses], [ip])
})

test('an address that the machine has for another purpose is left alone', async (t) => {
  const { host, serviceStates, clock } = running(t)
  serviceStates.set(statesFor('pi-2'))
  await clock.settle()
  host.own.add(ip)
  serviceStates.set(statesFor('pi-1'))
  await clock.advance(5_000)
  t.same([...host.addresses], [])
})

test('the IPv6 address of a Service is taken once its rules are in place, and has one of its own', async (t) => {
  const { host, networkMessage, serviceStates, balancerRules, ofIPv6, clock } = running(t)
  t.equal(ofIPv6.rules.get(), undefined, 'in a fleet without IPv6')
  const ranges = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
  networkMessage.set({ ...network, ipv6: ranges })
  const ipv6 = { clusterIPs: ['fd00:10:96::7'], loadBalancerIPs: ['fd00:9::240'], endpoints: [] }
  const web = aService({ type: 'LoadBalancer', loadBalancerIPs: [ip], loadBalancerNode: 'pi-1', ipv6 })
  serviceStates.set({ services: new Map([['shop/web', web]]), changed: ['shop/web'], isComplete: true })
  await clock.advance(4_000)
  t.same([...host.addresses], [ip])
  ofIPv6.applied.set([noRules])
  await clock.advance(4_000)
  t.same([...host.addresses], [ip, 'fd00:9::240'])
  t.ok(host.askedIPv6 > 0, 'its neighbours are read while it is probed')
  const asked = host.askedIPv6
  await clock.advance(60_000)
  t.equal(host.askedIPv6, asked, 'and not later')
  t.same([...(balancerRules.get()?.sets.get('balancer-ips')?.elements ?? [])], [[ip, '']])
  const rules = ofIPv6.rules.get()
  t.same(rules?.chains.get('balancers-input')?.rules, ['ip6 daddr @balancer-ips meta l4proto { tcp, udp } reject'])
  t.match(rules?.sets.get('balancer-ips') ?? {}, { type: 'ipv6_addr', elements: new Map([['fd00:9::240', '']]) })
  networkMessage.set(network)
  await clock.settle()
  t.same([...host.addresses], [ip])
  t.equal(ofIPv6.rules.get(), undefined)
})

test('on a link that refuses IPv6 addresses the IPv4 addresses are taken', async (t) => {
  const { host, networkMessage, serviceStates, ofIPv6, clock } = running(t)
  host.failingIPv6 = true
  networkMessage.set({ ...network, ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' } })
  ofIPv6.applied.set([noRules])
  const ipv6 = { clusterIPs: ['fd00:10:96::7'], loadBalancerIPs: ['fd00:9::240'], endpoints: [] }
  const web = aService({ type: 'LoadBalancer', loadBalancerIPs: [ip], loadBalancerNode: 'pi-1', ipv6 })
  serviceStates.set({ services: new Map([['shop/web', web]]), changed: ['shop/web'], isComplete: true })
  await clock.advance(5_000)
  t.same([...host.addresses], [ip])
})
