/** The address at the other end of a connection, and what of it counts as one peer. */
import { isIPv6, type Socket } from 'node:net'

/** Without the prefix of an IPv4-mapped IPv6 address, which a listener for both kinds shows. */
export function peerAddress({ remoteAddress }: Pick<Socket, 'remoteAddress'>): string | undefined {
  return remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '')
}

/** One peer: an IPv4 address; of IPv6 the first 64 bits, for a host chooses the others freely (RFC 4291, 2.5.4). */
export function addressKey(address: string | undefined): string {
  if (address === undefined || !isIPv6(address)) return address ?? 'unknown'
  const [head = '', tail] = address.replace(/%.*$/, '').split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => '0')
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}
