/** The rules of the name server's address: the kernel drops what the server would not answer, before it costs the agent anything. */
import { nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { RuleSet } from '../rule-set.ts'
import { questionLimits } from './source-limit.ts'

const floodSet = 'names-flood'

/**
 * Of the part `names`. A process of the machine is not limited. A source address that is not routed to where a packet came from is
 * forged: its answer would go to another one.
 */
export function nameRules({ clusterCIDR, nodes }: NetworkMessage, nodeName: string): RuleSet {
  const pods = nodes.find(({ name }) => name === nodeName)?.podCIDR ?? clusterCIDR
  const { perSecond, atOnce } = questionLimits
  const outside = `iifname != "lo" ip daddr ${nodeDnsAddress}`
  return {
    chains: new Map([
      [
        'names-input',
        {
          rules: [
            `${outside} ip saddr != ${pods} drop`,
            `${outside} fib saddr . iif oif missing drop`,
            `${outside} udp dport 53 add @${floodSet} { ip saddr limit rate over ${perSecond}/second burst ${atOnce} packets } drop`,
          ],
        },
      ],
    ]),
    sets: new Map([
      [
        floodSet,
        {
          kind: 'set',
          type: 'ipv4_addr',
          flags: ['dynamic', 'timeout'],
          timeoutSeconds: 10,
          size: 1_024,
          elements: undefined,
        },
      ],
    ]),
  }
}
