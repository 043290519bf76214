/** What nodes send each other by UDP does not come from their pods: real rules in network namespaces, without an engine or an agent. */
import { test } from 'tap'
import type { PeerNetwork } from '../agent/network/peers/peer-network.ts'
import { peerRules } from '../agent/network/peers/peer-rules.ts'
import { ipv4Rules } from '../agent/network/rule-family.ts'
import { noRules } from '../agent/network/rule-set.ts'
import { probePort } from '../api/network/address-probe.ts'
import { tunnelPort } from '../api/network/pod-network.ts'
import { bareFleet } from './support/bare-nodes.ts'
import { whyNoFlows } from './support/own-space.ts'

test('a pod sends nothing to the ports of nodes with the address of its node', { skip: whyNoFlows() }, async (t) => {
  const { nodes } = await bareFleet(t)
  const [first, second] = nodes
  for (const { address, pods, apply, applyOthers } of nodes) {
    const network: PeerNetwork = {
      ...{ clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/16', podCIDR: `${pods}0/24` },
      ...{ nodeAddresses: [first.address, second.address], routes: [], isGuarded: false, relays: new Map(), gaps: [] },
      tunnel: { kind: 'vxlan', address, mac: '02:62:0a:f4:01:00', peers: [] },
    }
    await apply([])
    await applyOthers(peerRules(network, ipv4Rules) ?? noRules)
  }
  const pod = await first.pod('a')
  const other = 9_999
  for (const { host } of nodes) for (const port of [tunnelPort, probePort, other]) await host.listen(port, 'udp')
  const asked = (port: number) => ({ address: second.address, port, protocol: 'udp' }) as const

  t.same(await pod.ask(asked(other)), [`pi-2 ${first.address}`], 'it has the address of its node elsewhere')
  for (const port of [tunnelPort, probePort]) {
    t.same(await first.host.ask(asked(port)), [`pi-2 ${first.address}`], `a node reaches UDP port ${port}`)
    t.same(await pod.ask(asked(port)), ['silent'], `a pod does not reach UDP port ${port} of another node`)
    t.same(await pod.ask({ ...asked(port), address: first.address }), ['silent'], `nor UDP port ${port} of its own`)
  }
})
