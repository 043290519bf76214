import { test } from 'tap'
import { jumpPoints } from '../base-rules.ts'
import type { PeerNetwork } from './peer-network.ts'
import { peerRules } from './peer-rules.ts'

const network: PeerNetwork = {
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
const rulesOf = (of: PeerNetwork, chain: string) => peerRules(of).chains.get(chain)?.rules ?? []

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

test('pods keep their addresses within the cluster only', async (t) => {
  t.same(rulesOf(network, 'peers-postrouting'), [
    'ip saddr 10.244.1.0/24 ip daddr != 10.244.0.0/16 ip daddr != 224.0.0.0/4 masquerade',
  ])
})

test('a tunnel takes packets of nodes only, and connections through it have its MTU', async (t) => {
  t.same(rulesOf(network, 'peers-input'), [])
  const tunnelled: PeerNetwork = {
    ...network,
    tunnel: { kind: 'vxlan', address: '10.244.1.0', mac: '02:62:0a:f4:01:00', peers: [] },
  }
  t.same(rulesOf(tunnelled, 'peers-input'), ['udp dport 8472 ip saddr @nodes accept', 'udp dport 8472 drop'])
  t.match(rulesOf(tunnelled, 'peers-forward')[1], /^tcp .* oifname bramble-vxlan .* maxseg size set rt mtu$/)
  t.equal(rulesOf(tunnelled, 'peers-forward').length, rulesOf(network, 'peers-forward').length + 1)
  t.same(rulesOf(tunnelled, 'tunnel-prerouting'), ['udp dport 8472 fib daddr type local notrack'])
  t.same(rulesOf(tunnelled, 'tunnel-output'), ['udp dport 8472 notrack'])
})

test('the set of nodes has their addresses, and chains of other parts are not filled', async (t) => {
  const { sets, chains } = peerRules(network)
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
  t.same(rulesOf(encrypted, 'peers-input'), rules)
  t.same(rulesOf(encrypted, 'peers-forward').slice(1, 3), rules, 'before any rule that lets a packet pass')
  t.match(rulesOf(encrypted, 'peers-forward')[3], /^tcp .* oifname bramble-wg .* maxseg size set rt mtu$/)
  t.match(peerRules(encrypted).sets.get('far'), { flags: ['interval'] })
  t.same([...(peerRules(encrypted).sets.get('far')?.elements?.keys() ?? [])], ['10.244.3.0/24'])
  t.equal(rulesOf(encrypted, 'peers-postrouting')[1], 'oifname bramble-wg ip saddr @nodes masquerade fully-random')
  t.equal(peerRules(network).sets.has('far'), false)
})
