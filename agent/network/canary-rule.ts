/**
 * A rule that shows by its effect that the kernel has the table: listing rules takes a process, a datagram takes none. Where a rule drops
 * a datagram that this machine sends, the call that sends it fails at once.
 */
import type { ByFamily } from '../../api/text/ip-address.ts'
import type { RuleFamily } from './rule-family.ts'

/** On the loopback interface, so that nothing leaves the machine where the rule is missing. */
export const canaryAddresses: ByFamily<string> = { IPv4: '127.98.114.109', IPv6: '::1' }
/** tcpmux (RFC 1078), which no distribution listens on. */
export const canaryPort = 1

/** For a chain of type filter at the hook `output`. */
export function canaryRule({ family, ip }: RuleFamily): string {
  return `${ip} daddr ${canaryAddresses[family]} udp dport ${canaryPort} drop`
}
