/** The rules of the addresses that this node holds for load balancers. */
import type { RuleFamily } from '../rule-family.ts'
import { noRules, type RuleSet } from '../rule-set.ts'
import { addressesOf } from '../services/rule-text.ts'

/**
 * Rules of the part `balancers` of the family's table. A load balancer's address serves only the ports of its Service:
 * SSH of the node that holds the address is not reachable there. Packets to a Service already have another destination
 * at this hook.
 */
export function balancerRules(addresses: readonly string[], family: RuleFamily): RuleSet {
  const own = addressesOf(family, addresses)
  if (own.length === 0) return noRules
  const rule = `${family.ip} daddr @balancer-ips meta l4proto { tcp, udp } reject`
  return {
    chains: new Map([['balancers-input', { rules: [rule] }]]),
    sets: new Map([
      ['balancer-ips', { kind: 'set', type: family.address, elements: new Map(own.map((ip) => [ip, ''])) }],
    ]),
  }
}
