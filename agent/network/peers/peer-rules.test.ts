import { test } from 'tap'
import { jumpPoints } from '../base-rules.ts'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { noRules } from '../rule-set.ts'
import type { PeerNetwork } from './family-network.ts'
import { peerRules } from './peer-rules.ts'

const network: PeerNetwork = {
  address: '192.168.1.1',
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  podCIDR: '10.244.1.0/24',
  nodeAddresses: ['192.168.1.1', '192.168.1.2'],
  routes: [],
  tunnel: undefined,
  isGuarded: false,
  relays: new Map(),
  gaps: [],
}
const ofIPv4 = (of: PeerNetwork) => peerRules(of, ipv4Rules) ?? noRules
const rulesOf = (of: PeerNetwork, chain: string) => ofIPv4(of).chains.get(chain)?.rules ?? []

test('what no rule marks is dropped on its way to a pod', async (t) => {
  const rules = rulesOf(network, 'peers-forward')
  t.equal(rules.at(-1), 'ip daddr 10.244.1.0/24 drop')
  t.same(rulesOf(network, 'peers-pass'), ['meta mark set meta mark | 0x8000 accept'])
  t.same(
    rules.filter((rule) => !/ (goto peers-pass|drop)$/.test(rule)),
    [],
    'each rule marks or drops',
  )
})

test('a pod does not send nodes what nodes alone may send each other, with the address of its node', async (t) => {
  const rules = rulesOf(network, 'peers-forward')
  const refused = rules.indexOf('ip saddr 10.244.1.0/24 udp dport 8473 ip daddr @nodes drop')
  t.ok(refused > 0)
  t.ok(refused < rules.findIndex((rule) => rule.startsWith('ct ')), 'before connections that are there')
  const tunnel = { kind: 'vxlan', address: '10.244.1.0', mac: '02:62:0a:f4:01:00', peers: [] } as const
  t.ok(
    rulesOf({ ...network, tunnel }, 'peers-forward').some((rule) =>
      rule.includes('{ 8472, 8473 } ip daddr @nodes drop'),
    ),
  )
})

test('pods keep their addresses within the cluster only', async (t) => {
  t.same(rulesOf(network, 'peers-postrouting'), [
    'ip saddr 10.244.1.0/24 ip daddr != 10.244.0.0/16 ip daddr != 224.0.0.0/4 masquerade',
  ])
})

test('a tunnel takes packets of nodes only, and connections through it have its MTU', async (t) => {
  const ofPods = 'udp dport 8473 ip saddr 10.244.0.0/16 drop'
  const forged = (ports: string) => `udp dport ${ports} meta iifkind "bridge" fib saddr . iif oif missing drop`
  t.same(rulesOf(network, 'peers-input'), [forged('8473'), ofPods])
  const tunnelled: PeerNetwork = {
    ...network,
    tunnel: { kind: 'vxlan', address: '10.244.1.0', mac: '02:62:0a:f4:01:00', peers: [] },
  }
  t.same(rulesOf(tunnelled, 'peers-input'), [
    forged('{ 8472, 8473 }'),
    'udp dport 8472 ip saddr @nodes ip daddr @nodes accept',
    'udp dport 8472 drop',
    ofPods,
  ])
  t.match(rulesOf(tunnelled, 'peers-forward')[1], /^tcp .* oifname bramble-vxlan .* maxseg size set rt mtu$/)
  t.equal(rulesOf(tunnelled, 'peers-forward').length, rulesOf(network, 'peers-forward').length + 1)
  t.same(rulesOf(tunnelled, 'tunnel-prerouting'), ['udp dport 8472 ip daddr != 10.244.0.0/16 ip saddr @nodes notrack'])
  t.same(rulesOf(tunnelled, 'peers-sent'), ['udp dport 8472 notrack accept'])
})

test('the route of a source is looked up where the name of the bridge does not settle it', async (t) => {
  const lookup = 'fib saddr . iif oif missing drop'
  const first = (link?: string) => peerRules(network, ipv4Rules, link)?.chains.get('peers-forward')?.rules.slice(0, 2)
  t.match(first(), [`ip saddr 10.244.1.0/24 ${lookup}`, /goto peers-pass$/])
  t.same(first('br-0123456789ab'), [
    `ip saddr 10.244.1.0/24 iifname != "br-0123456789ab" ${lookup}`,
    `ip saddr 10.244.1.0/31 ${lookup}`,
  ])
  const rules = peerRules({ ...network, ipv6 }, ipv6Rules, 'br-0123456789ab')?.chains.get('peers-forward')?.rules ?? []
  t.ok(rules.includes(`ip6 saddr fd00:10:244:1::/127 ${lookup}`), 'the addresses that the node has itself')
})

test('a pod sends with no address of a node, nor of its pods', async (t) => {
  const rules = peerRules(network, ipv4Rules, 'br-0123456789ab')?.chains.get('peers-forward')?.rules ?? []
  t.same(rules.slice(2, 4), [
    'iifname "br-0123456789ab" ip saddr != 10.244.1.0/24 ip saddr 10.244.0.0/16 drop',
    'iifname "br-0123456789ab" ip saddr != 10.244.1.0/24 ip saddr @nodes drop',
  ])
})

test('the set of nodes has their addresses, and chains of other parts are not filled', async (t) => {
  const { sets, chains } = ofIPv4(network)
  t.same([...(sets.get('nodes')?.elements?.keys() ?? [])], network.nodeAddresses)
  t.same(
    [...chains.keys()].filter((name) => !name.startsWith('peers-')),
    [],
  )
  t.ok([...chains.keys()].filter((name) => jumpPoints.has(name)).length === 3)
})

test('packets of other sites come by WireGuard alone, and go to pods alone', async (t) => {
  const encrypted: PeerNetwork = {
    ...network,
    routes: [
      { range: '10.244.2.0/24', gateway: '192.168.1.2' },
      { range: '10.244.3.0/24', gateway: '10.244.3.0', device: 'bramble-wg' },
      { range: '10.244.4.0/24', gateway: '192.168.1.2', source: '10.244.1.0' },
    ],
    tunnel: { kind: 'wireguard', address: '10.244.1.0', port: 51_871, peers: [] },
  }
  const rules = [
    'iifname != bramble-wg ip saddr @far drop',
    'iifname bramble-wg ip daddr != 10.244.0.0/16 ct state != { established, related } drop',
  ]
  t.same(rulesOf(encrypted, 'peers-input').slice(1, 3), rules)
  t.same(rulesOf(encrypted, 'peers-forward').slice(1, 3), rules, 'before any rule that lets a packet pass')
  t.match(rulesOf(encrypted, 'peers-forward')[3], /^tcp .* oifname bramble-wg .* maxseg size set rt mtu$/)
  t.match(ofIPv4(encrypted).sets.get('far'), { flags: ['interval'] })
  t.same([...(ofIPv4(encrypted).sets.get('far')?.elements?.keys() ?? [])], ['10.244.3.0/24'])
  t.equal(rulesOf(encrypted, 'peers-postrouting')[1], 'oifname bramble-wg ip saddr @nodes masquerade fully-random')
  t.equal(ofIPv4(network).sets.has('far'), false)
})

const ipv6 = {
  clusterCIDR: 'fd00:10:244::/56',
  serviceCIDR: 'fd00:10:96::/112',
  podCIDR: 'fd00:10:244:1::/64',
  nodeAddresses: ['fd00:1::1', 'fd00:1::2'],
  routes: [],
}

test('IPv6 rules are those of IPv4 with its addresses, and with what the link needs', async (t) => {
  t.equal(peerRules(network, ipv6Rules), undefined, 'none for pods without IPv6 addresses')
  const rules = peerRules({ ...network, ipv6 }, ipv6Rules) ?? noRules
  const asIPv6 = (text: string) =>
    text
      .replace(/\bip /g, 'ip6 ')
      .replaceAll(network.podCIDR, ipv6.podCIDR)
      .replaceAll(network.clusterCIDR, ipv6.clusterCIDR)
      .replaceAll('224.0.0.0/4', 'ff00::/8')
  const forward = rules.chains.get('peers-forward')?.rules ?? []
  const shared = rulesOf(network, 'peers-forward').filter((rule) => !rule.includes('udp'))
  t.same(forward.slice(3), shared.map(asIPv6))
  t.match(forward.slice(0, 3), [/^ip6 hoplimit 255 icmpv6 /, 'ip6 saddr fe80::/10 drop', 'ip6 daddr fe80::/10 drop'])
  t.same(rules.chains.get('peers-postrouting')?.rules, rulesOf(network, 'peers-postrouting').map(asIPv6))
  t.match(rules.sets.get('nodes'), { type: 'ipv6_addr', elements: new Map([['fd00:1::1', '']]) })
})

test('the packets of VXLAN are of IPv4: IPv6 rules do not name its port', async (t) => {
  const tunnel = { kind: 'vxlan', address: '10.244.1.0', mac: '02:62:0a:f4:01:00', peers: [] } as const
  const { chains } = peerRules({ ...network, ipv6, tunnel }, ipv6Rules) ?? noRules
  t.notMatch(JSON.stringify([...chains]), /8472/)
  t.match(chains.get('peers-forward')?.rules[4], /^tcp .* oifname bramble-vxlan .* maxseg size set rt mtu$/)
})
