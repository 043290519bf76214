/**
 * The rules of the name server's address: the kernel drops what the server would not answer, before it costs the agent anything, and
 * its own refusals while no agent listens.
 */
import { nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { RuleElements, RuleSet } from '../rule-set.ts'
import { questionLimits } from './source-limit.ts'

/** New connections of one client: resolvers open one for an answer that was cut off. */
export const connectionLimits = { perSecond: 100, atOnce: 200 }

/**
 * Rules of the part `names`. Processes of the machine itself are not limited. A source address that is not routed to
 * the interface a packet came from is forged: its answer would go to another machine.
 */
export function nameRules({ clusterCIDR, nodes }: NetworkMessage, nodeName: string): RuleSet {
  const pods = nodes.find(({ name }) => name === nodeName)?.podCIDR ?? clusterCIDR
  const opening = 'tcp dport 53 tcp flags & (syn | ack) == syn'
  return {
    chains: new Map([
      ['names-input', { rules: [`ip daddr ${nodeDnsAddress} iifname != "lo" goto names-clients`] }],
      [
        'names-clients',
        {
          rules: [
            `ip saddr != ${pods} drop`,
            'fib saddr . iif oif missing drop',
            `udp dport 53 ${dropBeyond('names-questions', questionLimits)}`,
            `${opening} ${dropBeyond('names-connections', connectionLimits)}`,
          ],
        },
      ],
      ['names-sent', { rules: refusals }],
    ]),
    sets: new Map([
      ['names-questions', clientSet],
      ['names-connections', clientSet],
    ]),
  }
}

/**
 * What the kernel answers while the agent restarts. Resolvers pass a refusal on to the program as a failure; without an answer they ask
 * again, after 5 s (glibc, `options timeout:` in resolv.conf(5)) or 2.5 s (musl). Bits 240 to 255 of the ICMP message are the
 * destination port of the datagram in it. The reset that refuses a connection has the sequence number 0 (RFC 9293, section 3.10.7.1).
 */
const refusals = [
  `ip saddr ${nodeDnsAddress} icmp type destination-unreachable @th,240,16 53 drop`,
  `ip saddr ${nodeDnsAddress} tcp sport 53 tcp flags & (rst | ack) == rst | ack tcp sequence 0 drop`,
]

/** Each client that the kernel has seen within some seconds; as many as a range for pods has at the most. */
const clientSet: RuleElements = {
  kind: 'set',
  type: 'ipv4_addr',
  flags: ['dynamic', 'timeout'],
  timeoutSeconds: 10,
  size: 1_024,
  elements: undefined,
}

function dropBeyond(set: string, { perSecond, atOnce }: typeof connectionLimits): string {
  return `add @${set} { ip saddr limit rate over ${perSecond}/second burst ${atOnce} packets } drop`
}
