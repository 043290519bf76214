/** Keeps multicast DNS of pods away from the node. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { ipv4Rules, ipv6Rules, type RuleFamily } from '../rule-family.ts'
import type { RuleSet } from '../rule-set.ts'

type Ranged = Pick<NetworkMessage, 'clusterCIDR'>

/**
 * Rules of the part `multicast`. A pod with the capability NET_RAW, which Docker gives by default, can send with any
 * source address and so could answer for a name of the local network. Drops packets with pod addresses, and packets
 * whose source is not routed to the interface they came from.
 */
export function mdnsRules(network: Ranged): RuleSet {
  return multicastInput(dropped(network, ipv4Rules))
}

/**
 * The same for IPv6. `podLink`: the bridge of the pods of this node. Each interface has the addresses of the link (`fe80::/10`), with which machines
 * send to all of the link: only their interface distinguishes those of pods from those of the house.
 */
export function ipv6MdnsRules(network: Ranged, podLink: string | undefined): RuleSet {
  const ofLink = podLink === undefined ? [] : [`iifname "${podLink}" udp dport 5353 drop`]
  return multicastInput([...ofLink, ...dropped(network, ipv6Rules)])
}

function dropped({ clusterCIDR }: Ranged, { ip }: RuleFamily): readonly string[] {
  return [
    `udp dport 5353 ${ip} saddr ${clusterCIDR} drop`,
    'udp dport 5353 iifname != "lo" fib saddr . iif oif missing drop',
  ]
}

function multicastInput(rules: readonly string[]): RuleSet {
  return { chains: new Map([['multicast-input', { rules }]]), sets: new Map() }
}
