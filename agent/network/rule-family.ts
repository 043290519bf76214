/** What differs between IPv4 and IPv6 rules: nft(8) names the parts of packets and the types of addresses by their family. */
import { parseCidr } from '../../api/text/cidr.ts'
import { type ByFamily, canonicalIPv6, type IPFamily, isIPv4 } from '../../api/text/ip-address.ts'
import { parseIPv6Range } from '../../api/text/ipv6-range.ts'

export type RuleFamily = {
  readonly family: IPFamily
  /** Name of the table's family, and prefix of address matches: `ip6 saddr`. */
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

export const ruleFamilies: ByFamily<RuleFamily> = { IPv4: ipv4Rules, IPv6: ipv6Rules }

/**
 * Whether it is an address as rules of this family have them. Of IPv6 it is the canonical form, and not an IPv4-mapped address, which no
 * packet has.
 */
export function isAddressOf({ family }: RuleFamily, text: string): boolean {
  return family === 'IPv4' ? isIPv4(text) : canonicalIPv6(text) === text && !text.includes('.')
}

/** Whether it is a range of such addresses, without bits set beyond its mask. */
export function isRangeOf(rules: RuleFamily, text: string): boolean {
  const [address = '', bits = ''] = text.split('/')
  if (!isAddressOf(rules, address)) return false
  if (rules.family === 'IPv4') return parseCidr(text) !== undefined
  return /^(0|[1-9]\d*)$/.test(bits) && parseIPv6Range(text) !== undefined
}

/** An address as the names of chains and sets have it, in which nft allows no colon. */
export function inNames(address: string): string {
  return address.replaceAll(':', '.')
}
