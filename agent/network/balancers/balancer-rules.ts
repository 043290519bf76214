/** The rules of the addresses that this node holds for load balancers. */
import { ipv4Rules, type RuleFamily } from '../rule-family.ts'
import { noRules, type RuleSet } from '../rule-set.ts'
import { addressesOf } from '../services/rule-text.ts'

/**
 * Of the part `balancers` of the family's table. An address has the ports of its Service, and none of the machine's own: SSH of the node that
 * has it now is not reached by it. Packets to a Service have another destination by then.
 */
export function balancerRules(addresses: readonly string[], family: RuleFamily = ipv4Rules): RuleSet {
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
