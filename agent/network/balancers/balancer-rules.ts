/** The rules of the addresses that this node holds for load balancers. */
import { noRules, type RuleSet } from '../rule-set.ts'

/**
 * Of the part `balancers`. An address has the ports of its Service, and none of the machine's own: SSH of the node that has it now is not
 * reached by it. Packets to a Service have another destination by then.
 */
export function balancerRules(addresses: readonly string[]): RuleSet {
  if (addresses.length === 0) return noRules
  return {
    chains: new Map([['balancers-input', { rules: ['ip daddr @balancer-ips meta l4proto { tcp, udp } reject'] }]]),
    sets: new Map([
      ['balancer-ips', { kind: 'set', type: 'ipv4_addr', elements: new Map(addresses.map((ip) => [ip, ''])) }],
    ]),
  }
}
