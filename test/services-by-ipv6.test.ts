/** The rules of Services and policies of IPv6 in real kernels: who answers, and which address the endpoint sees. */
import { test } from 'tap'
import { conntrackFlows } from '../agent/adapters/network/conntrack.ts'
import { hostNetwork } from '../agent/adapters/network/host-network.ts'
import { peerRules } from '../agent/network/peers/peer-rules.ts'
import { type LocalPod, policyRules } from '../agent/network/policies/policy-rules.ts'
import { ipv6Rules } from '../agent/network/rule-family.ts'
import { noRules, type RuleSet } from '../agent/network/rule-set.ts'
import { inIPv6 } from '../agent/network/services/ipv6-services.ts'
import { isStaleFlow, udpTargets } from '../agent/network/services/stale-flows.ts'
import { aService, endpointOn, type GivenService } from '../agent/network/testing/services.ts'
import type { PoliciesMessage, PolicyRuleState } from '../api/network/node-policies.ts'
import type { EndpointAddressState, ServiceState } from '../api/network/service-endpoints.ts'
import { type BareNode, bareFleet, ipv6Plan } from './support/bare-nodes.ts'
import type { Asked, EndpointProgram } from './support/endpoint-programs.ts'
import { probedFrom } from './support/node-probes.ts'
import { type OwnSpace, whyNoFlows } from './support/own-space.ts'
import { eventually } from './support/wait.ts'

type Given = Omit<GivenService, 'addresses' | 'ipv6'> & {
  readonly addresses?: readonly EndpointAddressState[]
  readonly outside?: Pick<NonNullable<ServiceState['ipv6']>, 'externalIPs' | 'loadBalancerIPs' | 'sourceRanges'>
}

const protocols = ['TCP', 'UDP'] as const

/** `shop/web` of both families, with port 80 of both protocols, as it is in IPv6. */
function dualStack({ addresses = [], outside = {}, nodePort, ...given }: Given): ServiceState {
  const ports = protocols.map((protocol) => ({ name: protocol.toLowerCase(), port: 8080, protocol }))
  const endpoints = [{ ports, addresses: [...addresses] }]
  const service = aService({ ...given, ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints, ...outside } })
  const own = ports.map((one) => ({ ...one, port: 80, ...(nodePort !== undefined && { nodePort }) }))
  return inIPv6({ ...service, ports: own }) ?? service
}

const clusterIP = { address: 'fd00:10:96::7', port: 80 }

test('Services and policies of IPv6 on two nodes', { skip: whyNoFlows() }, async (t) => {
  const fleet = await bareFleet(t, ipv6Plan)
  const [first, second] = fleet.nodes
  const a = await first.pod('a')
  const b = await first.pod('b')
  const c = await second.pod('c')
  for (const endpoint of [a, b, c])
    for (const protocol of ['tcp', 'udp'] as const) await endpoint.listen(8080, protocol)
  await first.host.listen(8080)
  const [onA, onC] = [endpointOn('pi-1', a.ip), endpointOn('pi-2', c.ip)]
  const gateway = 'fd00:10:244:1::1'
  const use = async (given: Given) => {
    for (const node of fleet.nodes) await node.apply([dualStack(given)])
  }
  /** A single question may have no answer at all, so its wait is short. */
  const answers = async (from: EndpointProgram, asked: Asked) =>
    [...new Set(await from.ask({ times: 12, ...(asked.times !== 1 && { patienceMs: 10_000 }), ...asked }))].sort()
  const at = ({ address }: BareNode) => ({ address, port: 30080 })

  await t.test('a pod and a node reach every endpoint by the ClusterIP, by TCP and UDP', async (t) => {
    await use({ addresses: [onA, onC] })
    const isAnswered = async (from: EndpointProgram) =>
      !(await answers(from, { ...clusterIP, patienceMs: 1_500 })).includes('silent')
    const areLinked = async () => (await isAnswered(b)) && (await isAnswered(first.host))
    await eventually('machines that have just got their links find each other', areLinked)
    const times = 40
    for (const protocol of ['tcp', 'udp'] as const) {
      const asked = { ...clusterIP, protocol, times }
      t.same(await answers(b, asked), [`a ${b.ip}`, `c ${b.ip}`], `${protocol}: the address is kept`)
      t.same(await answers(first.host, asked), [`a ${gateway}`, `c ${first.address}`], protocol)
    }
  })

  await t.test('a machine without a route to other networks reaches it by the route to Services', async (t) => {
    const { space, address } = first
    await space.run('ip', '-6', 'route', 'delete', 'default')
    t.same(await answers(first.host, clusterIP), ['ENETUNREACH'])
    const other = 'not-used'
    const host = hostNetwork('/', { ip: await space.tool('ip'), bridge: other, iptables: other, ip6tables: other })
    const route = { range: ipv6Plan.serviceRange, source: address }
    t.same(await host.apply([{ step: 'addServiceRoute', route }]), [])
    for (const protocol of ['tcp', 'udp'] as const) {
      const asked = { ...clusterIP, protocol, times: 40 }
      t.same(await answers(first.host, asked), [`a ${gateway}`, `c ${address}`], protocol)
    }
    const none = { address: 'fd00:10:96::99', port: 80, times: 1, patienceMs: 1_500 }
    t.same(await answers(first.host, none), ['silent'], 'an address that no Service has')
    t.same((await host.made()).serviceRoutes, [route])
    t.same(await host.apply([{ step: 'removeServiceRoute', route }]), [])
    t.same(await answers(first.host, clusterIP), ['ENETUNREACH'])
    await space.run('ip', '-6', 'route', 'add', 'default', 'via', `${ipv6Plan.link}254`)
  })

  await t.test('an endpoint reaches itself', async (t) => {
    await use({ addresses: [onA], type: 'NodePort', nodePort: 30080 })
    t.same(await answers(a, clusterIP), [`a ${gateway}`])
    t.same(await answers(a, at(first)), [`a ${gateway}`])
  })

  await t.test('a NodePort answers on each node, by TCP and UDP, and not on loopback', async (t) => {
    await use({ addresses: [onA], type: 'NodePort', nodePort: 30080 })
    for (const protocol of ['tcp', 'udp'] as const) {
      t.same(await answers(fleet.stranger, { ...at(first), protocol }), [`a ${gateway}`], protocol)
      t.same(await answers(fleet.stranger, { ...at(second), protocol }), [`a ${second.address}`], protocol)
    }
    t.same(await answers(c, at(second)), [`a ${second.address}`])
    t.same(await answers(first.host, { address: '::1', port: 30080 }), ['ECONNREFUSED'])
  })

  await t.test('at its address of the link a NodePort leads to no pod, but to the node itself', async (t) => {
    const ofLink = { address: `${await linkAddressOf(first.space)}%eth0`, port: 30080, times: 1 }
    await use({ addresses: [onA], type: 'NodePort', nodePort: 30080 })
    t.same(await fleet.stranger.ask(ofLink), ['EHOSTUNREACH'], 'the kernel forwards nothing from such an address')
    t.same(await fleet.stranger.ask({ ...ofLink, protocol: 'udp' }), ['silent'])
    await use({ addresses: [endpointOn('pi-1', first.address)], type: 'NodePort', nodePort: 30080 })
    t.match(await fleet.stranger.ask(ofLink), [/^pi-1 fe80:/])
  })

  await t.test('a node whose IPv6 is dropped does not answer the probe of another one', async (t) => {
    await eventually('it answers', async () => (await probedFrom(first.space, second.address)) === 'answers')
    await second.space.run(
      'nft',
      'add table ip6 cut; add chain ip6 cut arriving { type filter hook input priority 0; policy drop; }',
    )
    t.equal(await probedFrom(first.space, second.address), 'silent')
    await second.space.run('nft', 'delete', 'table', 'ip6', 'cut')
    await eventually('it answers again', async () => (await probedFrom(first.space, second.address)) === 'answers')
  })

  await t.test('the policy Local keeps the address of the client, and answers where the endpoint is', async (t) => {
    await use({ addresses: [onA], type: 'NodePort', nodePort: 30080, externalTrafficPolicy: 'Local' })
    t.same(await answers(fleet.stranger, at(first)), [`a ${fleet.strangerAddress}`])
    t.same(await answers(fleet.stranger, { ...at(second), times: 1 }), ['silent'])
    t.same(await answers(c, at(second)), [`a ${c.ip}`], 'a pod is not subject to the policy')
    await use({ addresses: [onA], internalTrafficPolicy: 'Local' })
    t.same(await answers(b, clusterIP), [`a ${b.ip}`])
    t.same(await answers(c, { ...clusterIP, times: 1 }), ['silent'])
  })

  await t.test('without endpoints connections are refused at once', async (t) => {
    await use({ type: 'NodePort', nodePort: 30080 })
    for (const asked of [
      clusterIP,
      { ...clusterIP, port: 81 },
      { ...clusterIP, protocol: 'udp' as const },
      at(first),
    ]) {
      t.same(await answers(a, { ...asked, times: 2 }), ['ECONNREFUSED'], JSON.stringify(asked))
    }
    t.same(await answers(fleet.stranger, { ...at(first), times: 1 }), ['ECONNREFUSED'])
    t.same(await answers(a, { address: 'fd00:10:96::99', port: 80, times: 1 }), ['silent'], 'no Service has it')
  })

  await t.test('the address of a load balancer admits its source ranges', async (t) => {
    const balancer = { address: '2001:db8::1', port: 80 }
    const outside = { loadBalancerIPs: [balancer.address] }
    const given = { addresses: [onA], type: 'LoadBalancer', nodePort: 30080 } as const
    await use({ ...given, outside: { ...outside, sourceRanges: ['fd00:7::/64'] } })
    t.same(await answers(fleet.stranger, balancer), [`a ${gateway}`])
    t.same(await answers(b, { ...balancer, times: 1 }), ['silent'], 'a pod is outside of the range')
    await use({ ...given, outside: { ...outside, sourceRanges: ['2001:db8:1::/48'] } })
    t.same(await answers(fleet.stranger, { ...balancer, times: 1 }), ['silent'])
  })

  await t.test('a client stays with its endpoint, also when all rules are put in place again', async (t) => {
    const service = dualStack({ addresses: [onA, onC], affinitySeconds: 600 })
    await first.apply([service])
    const chosen = await answers(b, clusterIP)
    t.equal(chosen.length, 1)
    await first.apply([service], true)
    t.same(await answers(b, clusterIP), chosen)
    const other = chosen[0]?.startsWith('a ') ? onC : onA
    await first.apply([dualStack({ addresses: [other], affinitySeconds: 600 })])
    t.notSame(await answers(b, clusterIP), chosen, 'its endpoint left')
  })

  await t.test('a flow of UDP to an endpoint that is gone goes to another once it is removed', async (t) => {
    const asked = { ...clusterIP, protocol: 'udp', times: 1, fromPort: 5000 } as const
    await first.apply([dualStack({ addresses: [onA] })])
    t.same(await answers(b, asked), [`a ${b.ip}`])
    const moved = dualStack({ addresses: [onC] })
    await first.apply([moved])
    t.same(await answers(b, asked), [`a ${b.ip}`], 'the kernel stays with a flow')
    const flows = conntrackFlows(ipv6Rules, await first.space.tool('conntrack'))
    const targets = udpTargets([moved], ipv6Rules)
    const stale = await flows.list((flow) => isStaleFlow(flow, targets), 10)
    t.ok(stale.length > 0)
    for (const flow of stale) await flows.remove(flow)
    t.same(await answers(b, asked), [`c ${b.ip}`])
    t.same(await flows.list((flow) => isStaleFlow(flow, targets), 10), [])
  })

  const pods = new Map<string, LocalPod>([
    [
      'a',
      {
        ...{ namespace: 'shop', name: 'a', ip: '10.244.1.2', ipv6: a.ip, labels: { app: 'a' }, isStatic: false },
        ports: [{ name: 'web', protocol: 'TCP', port: 8080 }],
      },
    ],
  ])
  const restrict = async (ingress: PolicyRuleState[] | undefined, more: Partial<PoliciesMessage> = {}) => {
    const policy = { namespace: 'shop', name: 'a', podSelector: { matchLabels: { app: 'a' } }, ingress: ingress ?? [] }
    const policies = ingress === undefined ? [] : [policy]
    const message = { epoch: 'e', version: 1, namespaces: ['shop'], sets: [], policies, ...more }
    await first.applyOthers(policyRules(message, pods, ipv6Rules))
  }
  const direct = { address: a.ip, port: 8080, times: 1 }

  await t.test('a policy admits the pods of its selector and the range of its ipBlock', async (t) => {
    const d = await first.pod('d')
    await use({ addresses: [onA], type: 'NodePort', nodePort: 30080, externalTrafficPolicy: 'Local' })
    const reached = async () => {
      const found: string[] = []
      for (const [name, pod] of Object.entries({ b, c, d })) {
        const [answer] = await pod.ask(direct)
        if (answer === `a ${pod.ip}`) found.push(name)
      }
      const [byNodePort] = await fleet.stranger.ask({ ...at(first), times: 1 })
      return [...found, ...(byNodePort === `a ${fleet.strangerAddress}` ? ['stranger'] : [])].join(' ')
    }
    t.equal(await reached(), 'b c d stranger')
    const sets = [{ name: 'ab', kind: 'address' as const, elements: ['10.244.1.3'], ipv6Elements: [b.ip] }]
    const peers = { sets: ['ab'], ranges: [], ipv6Ranges: [`${fleet.strangerAddress}-${fleet.strangerAddress}`] }
    await restrict([{ peers, ports: [{ name: 'web', protocol: 'TCP' }] }], { sets })
    for (const { inside } of [a, b, d]) await inside.run('ip', '-6', 'neighbour', 'flush', 'all')
    t.same(await a.ask({ ...direct, address: b.ip }), [`b ${a.ip}`], 'what neighbours answer is let through')
    t.equal(await reached(), 'b stranger')
    t.same(await first.host.ask(direct), [`a ${gateway}`], 'its node is always admitted')
    t.same(await b.ask({ ...direct, protocol: 'udp' }), ['silent'], 'the port is one of TCP')
    await restrict([{ peers: { sets: [], ranges: ['0.0.0.0-255.255.255.255'] } }])
    t.equal(await reached(), '', 'an IPv4 range')
    await restrict(undefined, { namespaces: [] })
    t.equal(await reached(), '', 'policies that are not known')
    await restrict(undefined)
    t.equal(await reached(), 'b c d stranger')
  })

  await t.test('no pod is reached at its address of the link', async (t) => {
    const address = `${await linkAddressOf(a.inside)}%eth0`
    t.match(await b.ask({ ...direct, address }), [/^a fe80:/])
    await first.applyOthers(peersOf(first))
    t.same(await b.ask({ ...direct, address }), ['silent'])
    await b.inside.run('ip', '-6', 'neighbour', 'flush', 'all')
    t.same(await answers(b, clusterIP), [`a ${b.ip}`], 'neighbours find each other')
  })
})

async function linkAddressOf({ run }: Pick<OwnSpace, 'run'>): Promise<string> {
  const links = await run('ip', '-6', 'address', 'show', 'dev', 'eth0', 'scope', 'link')
  return /inet6 (fe80[0-9a-f:]+)/.exec(links)?.[1] ?? ''
}

function peersOf({ pods, address }: BareNode): RuleSet {
  const { podRange: clusterCIDR, serviceRange: serviceCIDR, podBits } = ipv6Plan
  const ipv6 = { clusterCIDR, serviceCIDR, podCIDR: `${pods}/${podBits}`, nodeAddresses: [address], routes: [] }
  const none = { address: '192.0.2.1', tunnel: undefined, isGuarded: false, relays: new Map(), gaps: [] }
  return peerRules({ ...ipv6, ...none, ipv6 }, ipv6Rules) ?? noRules
}
