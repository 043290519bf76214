/** What the rules of IPv4 and IPv6 differ in: nft(8) names the parts of packets and the types of addresses by their family. */
import type { IPFamily } from '../../api/text/ip-address.ts'

export type RuleFamily = {
  readonly family: IPFamily
  /** Of the table, and of the matches of addresses: `ip6 saddr`. */
  readonly ip: 'ip' | 'ip6'
  /** The type of the elements of sets. */
  readonly address: 'ipv4_addr' | 'ipv6_addr'
  readonly loopback: string
  readonly multicast: string
}

export const ipv4Rules: RuleFamily = {
  family: 'IPv4',
  ip: 'ip',
  address: 'ipv4_addr',
  loopback: '127.0.0.0/8',
  multicast: '224.0.0.0/4',
}
export const ipv6Rules: RuleFamily = {
  family: 'IPv6',
  ip: 'ip6',
  address: 'ipv6_addr',
  loopback: '::1',
  multicast: 'ff00::/8',
}
