/** The chains by which the kernel enters the rules of NetworkPolicies. */
import type { RuleFamily } from '../rule-family.ts'
import type { RuleChain } from '../rule-set.ts'
import { isolationMap } from './policy-chains.ts'

export type Direction = 'ingress' | 'egress'
export const directions: readonly Direction[] = ['ingress', 'egress']

/** Source and destination NAT of Services have taken place, and those rules come later that mark what Docker lets pass. */
const priority = { egress: -30, ingress: -20 }

/**
 * The kernel enters them before the chains that mark what Docker lets pass: `accept` ends one of them only. What a pod has with itself
 * is always allowed; packets between a pod and its own node are not forwarded, and never come here (networking/v1 NetworkPolicy; Kubernetes'
 * page "Network Policies").
 */
export function entryChains({ family, ip }: RuleFamily): readonly (readonly [string, RuleChain])[] {
  const chain = (direction: Direction, side: 'saddr' | 'daddr'): RuleChain => ({
    base: { type: 'filter', hook: 'forward', priority: priority[direction] },
    rules: [
      'ct state established,related accept',
      ...(family === 'IPv6' ? [neighbours] : []),
      `${ip} saddr . ${ip} daddr @policy-self accept`,
      `${ip} ${side} vmap @${isolationMap(direction)}`,
    ],
  })
  return [
    ['policies-egress', chain('egress', 'saddr')],
    ['policies-ingress', chain('ingress', 'daddr')],
  ]
}

/**
 * What pods of one bridge send each other passes these chains too. They find each other's hardware addresses by ICMPv6, as by ARP, which no
 * policy restricts. The part `peers` drops what else they send by addresses of the link, which no policy names. The hop limit of what is routed
 * is below 255: such a packet is not valid neighbour discovery (RFC 4861, 7.1), and could carry anything beyond the link.
 */
const neighbours = 'ip6 hoplimit 255 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept'
