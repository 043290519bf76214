/** The rules of the pod network: what may be forwarded to and from pods, and whose address a packet leaves the cluster with. */
import { probePort } from '../../../api/network/address-probe.ts'
import { tunnelPort } from '../../../api/network/pod-network.ts'
import { beforeTracking } from '../base-rules.ts'
import { ipv4Rules, type RuleFamily } from '../rule-family.ts'
import type { RuleChain, RuleElements, RuleSet } from '../rule-set.ts'
import type { FamilyNetwork, PeerNetwork } from './family-network.ts'
import { tunnelDevice, wireguardDevice } from './tunnels.ts'

/**
 * Docker accepts packets that have it: the only rule of ours among its own obeys the mark, and all judgement is in our table. Docker
 * would drop packets between nodes otherwise.
 */
export const forwardMark = '0x8000'

/** What rules of one family need of the network. */
type RuledNetwork = FamilyNetwork & Pick<PeerNetwork, 'tunnel'> & { readonly podLink: string | undefined }

/**
 * Rules of the part `peers`: see `jumpPoints`. undefined: the pods have no addresses of this family. `podLink`: the
 * bridge by which the kernel reaches the pods of this node; undefined: not known, and each of their packets costs a
 * lookup.
 */
export function peerRules(network: PeerNetwork, family: RuleFamily, podLink?: string): RuleSet | undefined {
  if (family.family === 'IPv4') return familyRules({ ...network, podLink }, family)
  return network.ipv6 && familyRules({ ...network.ipv6, tunnel: network.tunnel, podLink }, family)
}

function familyRules(network: RuledNetwork, family: RuleFamily): RuleSet {
  const { tunnel } = network
  const isOuter = family === ipv4Rules
  return {
    chains: new Map<string, RuleChain>([
      ['peers-forward', { rules: forwardRules(network, family) }],
      ['peers-pass', { rules: [`meta mark set meta mark | ${forwardMark} accept`] }],
      ['peers-postrouting', { rules: leavingRules(network, family) }],
      ['peers-input', { rules: inputRules(network, family) }],
      ...(tunnel?.kind === 'vxlan' && isOuter ? untrackedTunnel(network) : []),
    ]),
    sets: new Map([
      ['nodes', nodeSet(network, family)],
      ...(tunnel?.kind === 'wireguard' ? [farSet(network, family)] : []),
    ]),
  }
}

/**
 * The packets of VXLAN themselves are not tracked, as in Calico: each would be looked up and counted, and no answer belongs to them, as
 * both ways go to the same port. What they carry is tracked when it is out of the tunnel. What pods send elsewhere to this port is
 * tracked, as it leaves with the address of their node, and so is what a node sends to this port of a pod.
 */
const untrackedTunnel = ({ clusterCIDR }: RuledNetwork): readonly (readonly [string, RuleChain])[] => [
  [
    'tunnel-prerouting',
    {
      base: { type: 'filter', hook: 'prerouting', priority: beforeTracking },
      rules: [`udp dport ${tunnelPort} ip daddr != ${clusterCIDR} ip saddr @nodes notrack`],
    },
  ],
  ['peers-sent', { rules: [`udp dport ${tunnelPort} notrack accept`] }],
]

function inputRules({ clusterCIDR, tunnel }: RuledNetwork, family: RuleFamily): readonly string[] {
  const encrypted = tunnel?.kind === 'wireguard' ? encryptedRules(clusterCIDR, family) : []
  if (family.family !== 'IPv4') return encrypted
  // Else anyone could send packets in a tunnel, with the source address of a pod. Its own packets are of IPv4 always.
  // Nodes send to InternalIPs. What a pod sends to another address of a node has left its own one with the address of that.
  const tunnelled = [`udp dport ${tunnelPort} ip saddr @nodes ip daddr @nodes accept`, `udp dport ${tunnelPort} drop`]
  const ofPods = `udp dport ${probePort} ip saddr ${clusterCIDR} drop`
  const forged = `udp dport ${portsOfNodes(tunnel)} ${isForged} drop`
  return [forged, ...(tunnel?.kind === 'vxlan' ? tunnelled : encrypted), ofPods]
}

/**
 * Docker gives pods NET_RAW, with which they send with any source, that of a node too. Of bridges only: packets of other nodes may come
 * by another link than the one that leads to them.
 */
const isForged = 'meta iifkind "bridge" fib saddr . iif oif missing'

/**
 * Where nodes take packets of nodes: one of a pod leaves with the address of its node, by which it would get into the tunnel with the
 * source of any other pod, and use up the proofs that its node may ask for.
 */
function portsOfNodes(tunnel: RuledNetwork['tunnel']): string {
  return tunnel?.kind === 'vxlan' ? `{ ${tunnelPort}, ${probePort} }` : `${probePort}`
}

/**
 * WireGuard accepts from a peer the addresses of its own pods only: they come from no other interface. What another node sends is for
 * pods and their nodes, and goes no further. Answers reach the client that used a Service: source NAT is undone before.
 */
function encryptedRules(clusterCIDR: string, { ip }: RuleFamily): readonly string[] {
  return [
    `iifname != ${wireguardDevice} ${ip} saddr @far drop`,
    `iifname ${wireguardDevice} ${ip} daddr != ${clusterCIDR} ct state != { established, related } drop`,
  ]
}

/**
 * Rules for packets between ports of the bridge. A hop limit of 255 shows that no router forwarded the packet.
 * Neighbour discovery passes: pods find each other's MAC addresses by it. Other packets with link-local addresses are
 * dropped: they would bypass policies, and a pod that announces itself as a router (from a link-local address, RFC
 * 4861, 6.1.2) would get the packets of its neighbours.
 */
const linkRules: readonly string[] = [
  'ip6 hoplimit 255 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } goto peers-pass',
  'ip6 saddr fe80::/10 drop',
  'ip6 daddr fe80::/10 drop',
]

/**
 * The source address of a pod of this node, on another interface than its bridge. A lookup of the route takes several times as long as
 * the comparison of a name, which settles it for all addresses but the first two of the range: those the node has itself, one of the
 * tunnel and one of the bridge.
 */
function forgedPods({ clusterCIDR, podCIDR, podLink }: RuledNetwork, { ip, family }: RuleFamily): readonly string[] {
  const lookup = 'fib saddr . iif oif missing drop'
  if (podLink === undefined) return [`${ip} saddr ${podCIDR} ${lookup}`]
  const ofNode = podCIDR.replace(/\/.*/, family === 'IPv4' ? '/31' : '/127')
  return [
    `${ip} saddr ${podCIDR} iifname != "${podLink}" ${lookup}`,
    `${ip} saddr ${ofNode} ${lookup}`,
    // The other way round: pods have no address of another node, nor of its pods.
    `iifname "${podLink}" ${ip} saddr != ${podCIDR} ${ip} saddr ${clusterCIDR} drop`,
    `iifname "${podLink}" ${ip} saddr != ${podCIDR} ${ip} saddr @nodes drop`,
  ]
}

function forwardRules(network: RuledNetwork, family: RuleFamily): readonly string[] {
  const { clusterCIDR, podCIDR, tunnel } = network
  const { ip } = family
  const device = tunnel?.kind === 'wireguard' ? wireguardDevice : tunnelDevice
  return [
    ...(family.family === 'IPv6' ? linkRules : []),
    ...forgedPods(network, family),
    ...(tunnel?.kind === 'wireguard' ? encryptedRules(clusterCIDR, family) : []),
    // The MTU of pods is that of Ethernet. Few packets open a connection: the name of the interface is compared for those only.
    ...(tunnel === undefined
      ? []
      : [`tcp flags & (syn | rst) == syn oifname ${device} tcp option maxseg size set rt mtu`]),
    // What most packets are is looked for first.
    `${ip} saddr ${clusterCIDR} ${ip} daddr ${clusterCIDR} goto peers-pass`,
    ...(family.family === 'IPv4'
      ? [
          `${ip} saddr ${podCIDR} udp dport ${portsOfNodes(tunnel)} ${ip} daddr @nodes drop`,
          `udp dport ${portsOfNodes(tunnel)} ${ip} daddr @nodes ${isForged} drop`,
        ]
      : []),
    // Host ports and Services, and their answers.
    `ct status dnat ${ip} daddr ${clusterCIDR} goto peers-pass`,
    `ct status dnat ${ip} saddr ${clusterCIDR} goto peers-pass`,
    `${ip} saddr @nodes ${ip} daddr ${clusterCIDR} goto peers-pass`,
    `ct state established,related ${ip} saddr ${clusterCIDR} goto peers-pass`,
    `ct state established,related ${ip} daddr ${clusterCIDR} goto peers-pass`,
    // Docker from version 28 on would accept it: the network of pods has no rules of its own there (gateway mode nat-unprotected).
    `${ip} daddr ${podCIDR} drop`,
  ]
}

/** As flannel: pods keep their addresses among each other, and have that of their node elsewhere. Multicast is left alone. */
function leavingRules(
  { clusterCIDR, podCIDR, tunnel }: RuledNetwork,
  { ip, multicast }: RuleFamily,
): readonly string[] {
  return [
    `${ip} saddr ${podCIDR} ${ip} daddr != ${clusterCIDR} ${ip} daddr != ${multicast} masquerade`,
    // The far end accepts addresses of pods alone. A relay gets packets with the addresses of its neighbours, too.
    ...(tunnel?.kind === 'wireguard' ? [`oifname ${wireguardDevice} ${ip} saddr @nodes masquerade fully-random`] : []),
  ]
}

function nodeSet({ nodeAddresses }: FamilyNetwork, { address: type }: RuleFamily): RuleElements {
  return { kind: 'set', type, elements: new Map(nodeAddresses.map((node) => [node, ''])) }
}

/** The pods that are reached by WireGuard. */
function farSet({ routes }: FamilyNetwork, { address: type }: RuleFamily): [string, RuleElements] {
  const ranges = routes.flatMap(({ range, device }) => (device === wireguardDevice ? [range] : []))
  return ['far', { kind: 'set', type, flags: ['interval'], elements: new Map(ranges.map((range) => [range, ''])) }]
}
