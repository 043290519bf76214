import { test } from 'tap'
import { jumpPoints } from '../base-rules.ts'
import type { PeerNetwork } from './peer-network.ts'
import { peerRules } from './peer-rules.ts'

const network: PeerNetwork = {
  clusterCIDR: '10.244.0.0/16',
  podCIDR: '10.244.1.0/24',
  nodeAddresses: ['192.168.1.1', '192.168.1.2'],
  routes: [],
  tunnel: undefined,
}
const rulesOf = (of: PeerNetwork, chain: string) => peerRules(of).chains.get(chain)?.rules ?? []

test('what no rule marks is dropped on its way to a pod', async (t) => {
  const rules = rulesOf(network, 'peers-forward')
  t.equal(rules.at(-1), 'ip daddr 10.244.1.0/24 drop')
  t.same(rulesOf(network, 'peers-pass'), ['meta mark set meta mark | 0x8000'])
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
  const tunnelled = { ...network, tunnel: { address: '10.244.1.0', mac: '02:62:0a:f4:01:00', peers: [] } }
  t.same(rulesOf(tunnelled, 'peers-input'), ['udp dport 8472 ip saddr != @nodes drop'])
  t.match(rulesOf(tunnelled, 'peers-forward')[1], /^oifname bramble-vxlan tcp .* maxseg size set rt mtu$/)
  t.equal(rulesOf(tunnelled, 'peers-forward').length, rulesOf(network, 'peers-forward').length + 1)
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
