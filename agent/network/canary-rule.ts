/**
 * A rule that shows by its effect that the kernel has the table: listing rules takes a process, a connection takes none. A TCP connection
 * of this machine to a port of the loopback interface that nobody uses is refused in a way in which no closed port refuses one.
 */
import type { ByFamily } from '../../api/text/ip-address.ts'
import type { RuleFamily } from './rule-family.ts'

type Canary = {
  readonly address: string
  /** tcpmux (RFC 1078), which no distribution listens on. */
  readonly port: 1
  /** Error of a connection that the rule refuses: what Linux makes of the answer "administratively prohibited". */
  readonly code: 'EHOSTUNREACH' | 'EACCES'
}

export const canaries: ByFamily<Canary> = {
  IPv4: { address: '127.98.114.109', port: 1, code: 'EHOSTUNREACH' },
  IPv6: { address: '::1', port: 1, code: 'EACCES' },
}

/** For a chain of type filter at the hook `output`. */
export function canaryRule({ family, ip }: RuleFamily): string {
  const { address, port } = canaries[family]
  const icmp = family === 'IPv4' ? 'icmp' : 'icmpv6'
  return `${ip} daddr ${address} tcp dport ${port} reject with ${icmp} type admin-prohibited`
}
