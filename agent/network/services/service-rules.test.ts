import { test } from 'tap'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { serviceRules } from './service-rules.ts'

const node = {
  nodeName: 'pi-01',
  family: ipv4Rules,
  zone: '',
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  addresses: ['192.168.1.11'],
}
const here = endpointOn('pi-01', '10.244.1.2')
const there = endpointOn('pi-02', '10.244.2.2')

function rulesOf(state: ServiceState, zone = '') {
  const { chains, affinitySets, elements } = serviceRules(state, { ...node, zone })
  return {
    chains: Object.fromEntries(chains.map(([name, { rules }]) => [name, rules])),
    sets: affinitySets.map(([name]) => name),
    elements: elements.map(([name, key, value]) => (value === '' ? `${name}: ${key}` : `${name}: ${key} -> ${value}`)),
  }
}

const toPorts = (...addresses: string[]) => {
  const targets = addresses.map((address, index) => `${index} : ${address} . 8080`).join(', ')
  return [`meta l4proto tcp dnat ip addr . port to numgen random mod ${addresses.length} map { ${targets} }`]
}

test('a connection to a ClusterIP goes to any ready endpoint', async (t) => {
  t.same(rulesOf(aService({ addresses: [here, there, endpointOn('pi-02', '10.244.2.3', { ready: false })] })), {
    chains: { 'cluster-shop/web/tcp/80': toPorts('10.244.1.2', '10.244.2.2') },
    sets: [],
    elements: [
      'cluster-ips: 10.96.0.7',
      'hairpin-ips: 10.244.1.2 . 10.244.1.2',
      'service-ips: 10.96.0.7 . tcp . 80 -> goto cluster-shop/web/tcp/80',
    ],
  })
})

test('ports are matched with those of endpoints by name and protocol, and each slice has its own', async (t) => {
  const state = {
    ...aService({}),
    ports: [
      { name: 'dns', port: 53, protocol: 'UDP' as const },
      { name: 'dns-tcp', port: 53, protocol: 'TCP' as const },
    ],
    endpoints: [
      {
        ports: [
          { name: 'dns', port: 5353, protocol: 'UDP' as const },
          { name: 'dns-tcp', port: 5354, protocol: 'TCP' as const },
        ],
        addresses: [there],
      },
      {
        ports: [{ name: 'dns', port: 6353, protocol: 'UDP' as const }],
        addresses: [endpointOn('pi-02', '10.244.2.9')],
      },
    ],
  }
  t.same(rulesOf(state).chains, {
    'cluster-shop/web/udp/53': [
      'meta l4proto udp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.2.2 . 5353, 1 : 10.244.2.9 . 6353 }',
    ],
    'cluster-shop/web/tcp/53': [
      'meta l4proto tcp dnat ip addr . port to numgen random mod 1 map { 0 : 10.244.2.2 . 5354 }',
    ],
  })
})

test('without endpoints every way to the Service refuses at once', async (t) => {
  const state = aService({
    addresses: [],
    type: 'LoadBalancer',
    nodePort: 30080,
    externalIPs: ['192.0.2.1'],
    loadBalancerIPs: ['192.168.1.240'],
  })
  t.same(rulesOf(state), {
    chains: {},
    sets: [],
    elements: [
      'cluster-ips: 10.96.0.7',
      'no-endpoint-services: 10.96.0.7 . tcp . 80 -> goto service-reject',
      'no-endpoint-services: 192.0.2.1 . tcp . 80 -> goto service-reject',
      'no-endpoint-services: 192.168.1.240 . tcp . 80 -> goto service-reject',
      'no-endpoint-nodeports: tcp . 30080 -> goto service-reject',
    ],
  })
})

test('packets from outside the fleet are masqueraded, as their endpoint may be on another node', async (t) => {
  const { chains, elements } = rulesOf(aService({ addresses: [there], type: 'NodePort', nodePort: 30080 }))
  t.same(chains['external-shop/web/tcp/80'], ['meta mark set meta mark or 0x4000', 'goto cluster-shop/web/tcp/80'])
  t.ok(elements.includes('service-nodeports: tcp . 30080 -> goto external-shop/web/tcp/80'))
})

test('a Local internal policy uses endpoints of this node, and drops where only others have them', async (t) => {
  const local = aService({ addresses: [here, there], internalTrafficPolicy: 'Local' })
  t.same(rulesOf(local).chains, { 'local-shop/web/tcp/80': toPorts('10.244.1.2') })
  const elsewhere = rulesOf(aService({ addresses: [there], internalTrafficPolicy: 'Local' }))
  t.same(elsewhere, {
    chains: {},
    sets: [],
    elements: ['cluster-ips: 10.96.0.7', 'no-endpoint-services: 10.96.0.7 . tcp . 80 -> drop'],
  })
  const none = rulesOf(aService({ addresses: [], internalTrafficPolicy: 'Local' }))
  t.same(none.elements.at(-1), 'no-endpoint-services: 10.96.0.7 . tcp . 80 -> goto service-reject')
})

test('a Local external policy keeps the client’s address, but pods and the node itself use all endpoints', async (t) => {
  const state = { type: 'NodePort', nodePort: 30080, externalTrafficPolicy: 'Local' } as const
  const toAll = [
    'ip saddr 10.244.0.0/16 goto cluster-shop/web/tcp/80',
    'fib saddr type local meta mark set meta mark or 0x4000',
    'fib saddr type local goto cluster-shop/web/tcp/80',
  ]
  const both = rulesOf(aService({ ...state, addresses: [here, there] }))
  t.same(both.chains, {
    'cluster-shop/web/tcp/80': toPorts('10.244.1.2', '10.244.2.2'),
    'local-shop/web/tcp/80': toPorts('10.244.1.2'),
    'external-shop/web/tcp/80': [...toAll, 'goto local-shop/web/tcp/80'],
  })
  const elsewhere = rulesOf(aService({ ...state, addresses: [there] }))
  t.same(elsewhere.chains['external-shop/web/tcp/80'], toAll)
  t.same(elsewhere.elements.slice(-2), [
    'service-nodeports: tcp . 30080 -> goto external-shop/web/tcp/80',
    'no-endpoint-nodeports: tcp . 30080 -> drop',
  ])
})

test('endpoints that end are used while they serve and no other is ready, for each policy by itself', async (t) => {
  const ending = { ready: false, serving: true, terminating: true }
  const endsHere = endpointOn('pi-01', '10.244.1.9', ending)
  t.same(rulesOf(aService({ addresses: [endsHere, there] })).chains, {
    'cluster-shop/web/tcp/80': toPorts('10.244.2.2'),
  })
  t.same(rulesOf(aService({ addresses: [endsHere] })).chains, { 'cluster-shop/web/tcp/80': toPorts('10.244.1.9') })
  const local = { type: 'NodePort', nodePort: 30080, externalTrafficPolicy: 'Local' } as const
  const { chains } = rulesOf(aService({ ...local, addresses: [endsHere, there] }))
  t.same(chains['cluster-shop/web/tcp/80'], toPorts('10.244.2.2'))
  t.same(chains['local-shop/web/tcp/80'], toPorts('10.244.1.9'))
  const silent = endpointOn('pi-01', '10.244.1.9', { ...ending, serving: false })
  t.same(rulesOf(aService({ addresses: [silent] })).chains, {})
})

test('publishNotReadyAddresses uses all endpoints', async (t) => {
  const addresses = [endpointOn('pi-02', '10.244.2.2', { ready: false, serving: false })]
  t.same(rulesOf(aService({ addresses, publishNotReadyAddresses: true })).chains, {
    'cluster-shop/web/tcp/80': toPorts('10.244.2.2'),
  })
})

test('zones are kept where each endpoint has hints and one is for the zone of this node', async (t) => {
  const near = { ...here, zones: ['hall'] }
  const far = { ...there, zones: ['yard'] }
  const used = (zone: string, ...addresses: (typeof here)[]) =>
    rulesOf(aService({ addresses }), zone).chains['cluster-shop/web/tcp/80']
  const all = toPorts('10.244.1.2', '10.244.2.2')
  t.same(used('hall', near, far), toPorts('10.244.1.2'))
  t.same(used('yard', near, far), toPorts('10.244.2.2'))
  t.same(used('roof', near, far), all, 'no endpoint for the zone')
  t.same(used('', near, far), all, 'a node without a zone')
  t.same(used('hall', near, there), all, 'an endpoint without a hint')
  t.same(
    used('hall', { ...near, ready: false }, far),
    toPorts('10.244.2.2'),
    'hints of endpoints that are not ready do not count',
  )
})

test('ClientIP affinity keeps the clients of each endpoint in a set of its own', async (t) => {
  t.same(rulesOf(aService({ addresses: [here, there], affinitySeconds: 600 })), {
    chains: {
      'cluster-shop/web/tcp/80': [
        'ip saddr @affinity-shop/web/tcp/80/10.244.1.2/8080/600 goto endpoint-shop/web/tcp/80/10.244.1.2/8080',
        'ip saddr @affinity-shop/web/tcp/80/10.244.2.2/8080/600 goto endpoint-shop/web/tcp/80/10.244.2.2/8080',
        'numgen random mod 2 vmap { 0 : goto endpoint-shop/web/tcp/80/10.244.1.2/8080, 1 : goto endpoint-shop/web/tcp/80/10.244.2.2/8080 }',
      ],
      'endpoint-shop/web/tcp/80/10.244.1.2/8080': [
        'update @affinity-shop/web/tcp/80/10.244.1.2/8080/600 { ip saddr }',
        'meta l4proto tcp dnat to 10.244.1.2:8080',
      ],
      'endpoint-shop/web/tcp/80/10.244.2.2/8080': [
        'update @affinity-shop/web/tcp/80/10.244.2.2/8080/600 { ip saddr }',
        'meta l4proto tcp dnat to 10.244.2.2:8080',
      ],
    },
    sets: ['affinity-shop/web/tcp/80/10.244.1.2/8080/600', 'affinity-shop/web/tcp/80/10.244.2.2/8080/600'],
    elements: [
      'cluster-ips: 10.96.0.7',
      'hairpin-ips: 10.244.1.2 . 10.244.1.2',
      'service-ips: 10.96.0.7 . tcp . 80 -> goto cluster-shop/web/tcp/80',
    ],
  })
})

test('source ranges admit clients of a load balancer’s addresses, and the node itself where one contains it', async (t) => {
  const balanced = { type: 'LoadBalancer', loadBalancerIPs: ['192.168.1.240'], addresses: [here] } as const
  const firewallOf = (...sourceRanges: string[]) =>
    rulesOf(aService({ ...balanced, sourceRanges })).chains['firewall-shop/web/tcp/80']
  t.same(firewallOf('203.0.113.0/24', ' 198.51.100.0/24'), [
    'ip saddr 203.0.113.0/24 return',
    'ip saddr 198.51.100.0/24 return',
    'drop',
  ])
  t.same(firewallOf('192.168.1.0/24'), ['ip saddr 192.168.1.0/24 return', 'ip saddr 192.168.1.240 return', 'drop'])
  for (const open of [[], ['0.0.0.0/0', '203.0.113.0/24'], ['2001:db8::/32']]) t.equal(firewallOf(...open), undefined)
  const { elements } = rulesOf(aService({ ...balanced, sourceRanges: ['203.0.113.0/24'] }))
  t.equal(elements.at(-1), 'firewall-ips: 192.168.1.240 . tcp . 80 -> goto firewall-shop/web/tcp/80')
})

test('addresses of load balancers count for the type LoadBalancer only', async (t) => {
  const { elements } = rulesOf(aService({ addresses: [here], loadBalancerIPs: ['192.168.1.240'] }))
  t.notMatch(elements.join(), /192\.168/)
})

test('Services without an IPv4 address add nothing', async (t) => {
  const headless = [
    aService({ clusterIPs: [] }),
    aService({ clusterIPs: ['None'] }),
    aService({ clusterIPs: ['fd00::7'] }),
  ]
  const named = aService({ type: 'ExternalName', externalName: 'shop.example' })
  for (const state of [...headless, named]) t.same(rulesOf(state), { chains: {}, sets: [], elements: [] })
})

test('an invalid address, port, range or name never becomes a part of a rule', async (t) => {
  const hostile = '1.2.3.4 accept\nflush ruleset\n'
  const base = {
    addresses: [endpointOn('pi-01', hostile), endpointOn('pi-01', '10.244.1.300'), here],
    type: 'LoadBalancer',
    externalIPs: [hostile, '010.1.1.1'],
    loadBalancerIPs: [hostile, '192.168.1.240'],
    sourceRanges: [hostile, '0.0.0.0/33', '010.0.0.0/8'],
    affinitySeconds: 1e9,
  } as const
  const text = JSON.stringify(rulesOf(aService(base)))
  t.notMatch(text, /flush|accept|300|010\.|firewall/)
  t.match(text, /\/8080\/86400/, 'bounded as the API bounds it')
  for (const affinitySeconds of [0, -1, 0.5, Number.NaN]) {
    t.same(rulesOf(aService({ addresses: [here], affinitySeconds })).sets, [])
  }
  for (const port of [0, -1, 65536, 1.5, Number.NaN]) {
    const odd = aService({ addresses: [here], nodePort: port })
    t.notMatch(rulesOf(odd).elements.join(), /nodeports/)
    const ports = [{ port, protocol: 'TCP' as const }]
    t.same(rulesOf({ ...odd, ports }).chains, {})
    t.same(rulesOf({ ...odd, endpoints: [{ ports, addresses: [here] }] }).chains, {})
  }
  for (const name of [hostile, 'a b', '', 'A', 'web/tcp', 'x'.repeat(64)]) {
    t.same(rulesOf({ ...aService({ addresses: [here] }), name }).chains, {})
    t.same(rulesOf({ ...aService({ addresses: [here] }), namespace: name }).chains, {})
  }
})

test('a Service that another proxy forwards to has no rules', async (t) => {
  t.same(rulesOf(aService({ addresses: [here], proxiedElsewhere: true })), { chains: {}, sets: [], elements: [] })
})

test('IPv6 rules have its addresses, and names without colons', async (t) => {
  const ipv6Node = {
    ...{ nodeName: 'pi-01', zone: '', addresses: ['fd00:7::1'], family: ipv6Rules },
    ...{ clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112', controllers: ['fd00:7::9:6443'] },
  }
  const state = aService({
    ...{ type: 'LoadBalancer', clusterIPs: ['fd00:10:96::7'], nodePort: 30_080, externalTrafficPolicy: 'Local' },
    ...{ loadBalancerIPs: ['2001:db8::7'], externalIPs: ['10.0.0.7', 'fd00:10:96::8'], affinitySeconds: 60 },
    sourceRanges: ['fd00:7::/64', '10.0.0.0/8'],
    addresses: [endpointOn('pi-01', 'fd00:10:244:1::2'), endpointOn('pi-02', '10.244.2.2')],
  })
  const { chains, affinitySets, elements } = serviceRules(state, ipv6Node)
  t.same(affinitySets, [
    [
      'affinity-shop/web/tcp/80/fd00.10.244.1..2/8080/60',
      {
        ...{ kind: 'set', type: 'ipv6_addr', flags: ['dynamic', 'timeout'], timeoutSeconds: 60, elements: undefined },
      },
    ],
  ])
  t.same(Object.fromEntries(chains.map(([name, { rules }]) => [name, rules])), {
    'cluster-shop/web/tcp/80': [
      'ip6 saddr @affinity-shop/web/tcp/80/fd00.10.244.1..2/8080/60 goto endpoint-shop/web/tcp/80/fd00.10.244.1..2/8080',
      'numgen random mod 1 vmap { 0 : goto endpoint-shop/web/tcp/80/fd00.10.244.1..2/8080 }',
    ],
    'local-shop/web/tcp/80': [
      'ip6 saddr @affinity-shop/web/tcp/80/fd00.10.244.1..2/8080/60 goto endpoint-shop/web/tcp/80/fd00.10.244.1..2/8080',
      'numgen random mod 1 vmap { 0 : goto endpoint-shop/web/tcp/80/fd00.10.244.1..2/8080 }',
    ],
    'endpoint-shop/web/tcp/80/fd00.10.244.1..2/8080': [
      'update @affinity-shop/web/tcp/80/fd00.10.244.1..2/8080/60 { ip6 saddr }',
      'meta l4proto tcp dnat to [fd00:10:244:1::2]:8080',
    ],
    'external-shop/web/tcp/80': [
      'ip6 saddr fd00:10:244::/56 goto cluster-shop/web/tcp/80',
      'fib saddr type local meta mark set meta mark or 0x4000',
      'fib saddr type local goto cluster-shop/web/tcp/80',
      'goto local-shop/web/tcp/80',
    ],
    'firewall-shop/web/tcp/80': ['ip6 saddr fd00:7::/64 return', 'ip6 saddr 2001:db8::7 return', 'drop'],
  })
  t.same(elements, [
    ['cluster-ips', 'fd00:10:96::7', ''],
    ['hairpin-ips', 'fd00:10:244:1::2 . fd00:10:244:1::2', ''],
    ['service-ips', 'fd00:10:96::7 . tcp . 80', 'goto cluster-shop/web/tcp/80'],
    ['service-ips', '2001:db8::7 . tcp . 80', 'goto external-shop/web/tcp/80'],
    ['service-nodeports', 'tcp . 30080', 'goto external-shop/web/tcp/80'],
    ['firewall-ips', '2001:db8::7 . tcp . 80', 'goto firewall-shop/web/tcp/80'],
  ])
  t.same(serviceRules(aService({}), ipv6Node).elements, [], 'an IPv4 Service')
})
