/** Keeps multicast DNS of pods away from the node. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { RuleSet } from '../rule-set.ts'

/** With the other rules of packets to the node, before those of Docker. */
const priority = -10

/**
 * Of a part of its own. A pod with the capability NET_RAW, which Docker gives by default, can send with any source address: it could
 * answer for a name of the house. A packet with an address of pods is dropped, and so is one whose source is not routed to where it came from.
 */
export function mdnsRules({ clusterCIDR }: Pick<NetworkMessage, 'clusterCIDR'>): RuleSet {
  const rules = [
    `udp dport 5353 ip saddr ${clusterCIDR} drop`,
    'udp dport 5353 iifname != "lo" fib saddr . iif oif missing drop',
  ]
  return {
    chains: new Map([['mdns-input', { base: { type: 'filter', hook: 'input', priority }, rules }]]),
    sets: new Map(),
  }
}
