import { test } from 'tap'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { type BalancedPort, endpointChains } from './endpoint-chains.ts'
import type { PortEndpoint } from './usable-endpoints.ts'

const port: BalancedPort = {
  ...{ name: 'shop/web/tcp/80', protocol: 'tcp', affinitySeconds: undefined, family: ipv4Rules },
}
const endpoint = (ip: string, isLocal = false): PortEndpoint => ({
  ...{ ip, port: 8080, isLocal, isSilent: false, ready: true, serving: true, terminating: false, zones: [] },
})
const [here, there] = [endpoint('10.244.1.5', true), endpoint('10.244.2.5')]

function pieces(of: Partial<BalancedPort>, cluster: readonly PortEndpoint[], local: readonly PortEndpoint[] = []) {
  const reachable = [...new Set([...cluster, ...local])]
  const { chains, affinitySets, elements } = endpointChains(
    { ...port, ...of },
    { cluster, local, reachable, exist: true },
  )
  return { chains: Object.fromEntries(chains.map(([name, { rules }]) => [name, rules])), affinitySets, elements }
}

test('without endpoints there are no chains', async (t) => {
  t.same(pieces({}, []), { chains: {}, affinitySets: [], elements: [] })
})

test('each connection goes to any endpoint of its policy, and a local one may reach itself', async (t) => {
  t.same(pieces({}, [here, there], [here]), {
    chains: {
      'cluster-shop/web/tcp/80': [
        'meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.1.5 . 8080, 1 : 10.244.2.5 . 8080 }',
      ],
      'local-shop/web/tcp/80': [
        'meta l4proto tcp dnat ip addr . port to numgen random mod 1 map { 0 : 10.244.1.5 . 8080 }',
      ],
    },
    affinitySets: [],
    elements: [['hairpin-ips', '10.244.1.5 . 10.244.1.5', '']],
  })
  t.same(Object.keys(pieces({}, [], [here]).chains), ['local-shop/web/tcp/80'])
})

test('with affinity each endpoint keeps its clients for that time', async (t) => {
  const set = 'affinity-shop/web/tcp/80/10.244.2.5/8080/60'
  const { chains, affinitySets } = pieces({ affinitySeconds: 60 }, [there])
  t.same(chains, {
    'cluster-shop/web/tcp/80': [
      `ip saddr @${set} goto endpoint-shop/web/tcp/80/10.244.2.5/8080`,
      'numgen random mod 1 vmap { 0 : goto endpoint-shop/web/tcp/80/10.244.2.5/8080 }',
    ],
    'endpoint-shop/web/tcp/80/10.244.2.5/8080': [
      `update @${set} { ip saddr }`,
      'meta l4proto tcp dnat to 10.244.2.5:8080',
    ],
  })
  const flags = ['dynamic', 'timeout']
  t.match(affinitySets, [[set, { kind: 'set', type: 'ipv4_addr', flags, timeoutSeconds: 60 }]])
})

test('affinity lasts a day at most, and an invalid time has no effect', async (t) => {
  const seconds = (affinitySeconds: number) =>
    pieces({ affinitySeconds }, [there]).affinitySets.map(([, { timeoutSeconds }]) => timeoutSeconds)
  t.same([1, 86_400, 86_401].map(seconds), [[1], [86_400], [86_400]])
  t.same([0, -1, 1.5, Number.NaN].map(seconds), [[], [], [], []])
})

test('IPv6 endpoints have no colons in names, and brackets before their ports', async (t) => {
  const one = endpoint('2001:db8::5', true)
  const { chains, affinitySets, elements } = pieces({ family: ipv6Rules, affinitySeconds: 60 }, [one])
  t.same(chains['endpoint-shop/web/tcp/80/2001.db8..5/8080'], [
    'update @affinity-shop/web/tcp/80/2001.db8..5/8080/60 { ip6 saddr }',
    'meta l4proto tcp dnat to [2001:db8::5]:8080',
  ])
  t.match(affinitySets, [[/2001\.db8\.\.5/, { type: 'ipv6_addr' }]])
  t.same(elements, [['hairpin-ips', '2001:db8::5 . 2001:db8::5', '']])
  t.same(pieces({ family: ipv6Rules, protocol: 'udp' }, [one]).chains['cluster-shop/web/tcp/80'], [
    'meta l4proto udp dnat ip6 addr . port to numgen random mod 1 map { 0 : 2001:db8::5 . 8080 }',
  ])
})
