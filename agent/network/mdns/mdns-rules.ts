/** Keeps multicast DNS of pods away from the node. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { RuleSet } from '../rule-set.ts'

/**
 * Of the part `multicast`. A pod with the capability NET_RAW, which Docker gives by default, can send with any source address: it could
 * answer for a name of the house. A packet with an address of pods is dropped, and so is one whose source is not routed to where it came from.
 */
export function mdnsRules({ clusterCIDR }: Pick<NetworkMessage, 'clusterCIDR'>): RuleSet {
  const rules = [
    `udp dport 5353 ip saddr ${clusterCIDR} drop`,
    'udp dport 5353 iifname != "lo" fib saddr . iif oif missing drop',
  ]
  return {
    chains: new Map([['multicast-input', { rules }]]),
    sets: new Map(),
  }
}
