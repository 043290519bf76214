/** The rules of the pod network: what may be forwarded to and from pods, and whose address a packet leaves the cluster with. */
import { tunnelPort } from '../../../api/network/pod-network.ts'
import type { RuleChain, RuleElements, RuleSet } from '../rule-set.ts'
import type { PeerNetwork } from './peer-network.ts'
import { tunnelDevice, wireguardDevice } from './tunnels.ts'

/**
 * Docker accepts packets that have it: the only rule of ours among its own obeys the mark, and all judgement is in our table. Docker
 * would drop packets between nodes otherwise.
 */
export const forwardMark = '0x8000'

/** Of the part `peers`: see `jumpPoints`. */
export function peerRules(network: PeerNetwork): RuleSet {
  const { tunnel } = network
  return {
    chains: new Map<string, RuleChain>([
      ['peers-forward', { rules: forwardRules(network) }],
      ['peers-pass', { rules: [`meta mark set meta mark | ${forwardMark} accept`] }],
      ['peers-postrouting', { rules: leavingRules(network) }],
      ['peers-input', { rules: inputRules(network) }],
      ...(tunnel?.kind === 'vxlan' ? untrackedTunnel : []),
    ]),
    sets: new Map([['nodes', nodeSet(network)], ...(tunnel?.kind === 'wireguard' ? [farSet(network)] : [])]),
  }
}

/** Before connections are tracked (netfilter_ipv4.h, NF_IP_PRI_RAW). */
const beforeTracking = -300

/**
 * The packets of VXLAN themselves are not tracked, as in Calico: each would be looked up and counted, and no answer belongs to them, as
 * both ways go to the same port. What they carry is tracked when it is out of the tunnel.
 */
const untrackedTunnel: readonly (readonly [string, RuleChain])[] = [
  [
    'tunnel-prerouting',
    {
      base: { type: 'filter', hook: 'prerouting', priority: beforeTracking },
      rules: [`udp dport ${tunnelPort} fib daddr type local notrack`],
    },
  ],
  [
    'tunnel-output',
    { base: { type: 'filter', hook: 'output', priority: beforeTracking }, rules: [`udp dport ${tunnelPort} notrack`] },
  ],
]

function inputRules({ clusterCIDR, tunnel }: PeerNetwork): readonly string[] {
  if (tunnel === undefined) return []
  // Else anyone could send packets in a tunnel, with the source address of a pod.
  if (tunnel.kind === 'vxlan') return [`udp dport ${tunnelPort} ip saddr @nodes accept`, `udp dport ${tunnelPort} drop`]
  return encryptedRules(clusterCIDR)
}

/**
 * WireGuard accepts from a peer the addresses of its own pods only: they come from no other interface. What another node sends is for
 * pods and their nodes, and goes no further. Answers go on to the client that a Service was reached by: source NAT is undone before.
 */
function encryptedRules(clusterCIDR: string): readonly string[] {
  return [
    `iifname != ${wireguardDevice} ip saddr @far drop`,
    `iifname ${wireguardDevice} ip daddr != ${clusterCIDR} ct state != { established, related } drop`,
  ]
}

function forwardRules({ clusterCIDR, podCIDR, tunnel }: PeerNetwork): readonly string[] {
  const device = tunnel?.kind === 'wireguard' ? wireguardDevice : tunnelDevice
  return [
    // The source address of a pod of this node, on another interface than its bridge.
    `ip saddr ${podCIDR} fib saddr . iif oif missing drop`,
    ...(tunnel?.kind === 'wireguard' ? encryptedRules(clusterCIDR) : []),
    // The MTU of pods is that of Ethernet. Few packets open a connection: the name of the interface is compared for those only.
    ...(tunnel === undefined
      ? []
      : [`tcp flags & (syn | rst) == syn oifname ${device} tcp option maxseg size set rt mtu`]),
    // What most packets are is looked for first.
    `ip saddr ${clusterCIDR} ip daddr ${clusterCIDR} goto peers-pass`,
    // Host ports and Services, and their answers.
    `ct status dnat ip daddr ${clusterCIDR} goto peers-pass`,
    `ct status dnat ip saddr ${clusterCIDR} goto peers-pass`,
    `ip saddr @nodes ip daddr ${clusterCIDR} goto peers-pass`,
    `ct state established,related ip saddr ${clusterCIDR} goto peers-pass`,
    `ct state established,related ip daddr ${clusterCIDR} goto peers-pass`,
    // Docker from version 28 on would accept it: the network of pods has no rules of its own there (gateway mode nat-unprotected).
    `ip daddr ${podCIDR} drop`,
  ]
}

/** As flannel: pods keep their addresses among each other, and have that of their node elsewhere. Multicast is left alone. */
function leavingRules({ clusterCIDR, podCIDR, tunnel }: PeerNetwork): readonly string[] {
  return [
    `ip saddr ${podCIDR} ip daddr != ${clusterCIDR} ip daddr != 224.0.0.0/4 masquerade`,
    // The far end accepts addresses of pods alone. A relay gets packets with the addresses of its neighbours, too.
    ...(tunnel?.kind === 'wireguard' ? [`oifname ${wireguardDevice} ip saddr @nodes masquerade fully-random`] : []),
  ]
}

function nodeSet({ nodeAddresses }: PeerNetwork): RuleElements {
  return { kind: 'set', type: 'ipv4_addr', elements: new Map(nodeAddresses.map((address) => [address, ''])) }
}

/** The pods that are reached by WireGuard. */
function farSet({ routes }: PeerNetwork): [string, RuleElements] {
  const ranges = routes.flatMap(({ range, device }) => (device === wireguardDevice ? [range] : []))
  return [
    'far',
    { kind: 'set', type: 'ipv4_addr', flags: ['interval'], elements: new Map(ranges.map((range) => [range, ''])) },
  ]
}
