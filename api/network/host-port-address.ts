/** At which addresses of a node a host port is open: decided by its `hostIP`, which may be ''. */
import { canonicalIPv6, isIPv4 } from '../text/ip-address.ts'

/** At all IPv6 addresses, or at one. */
export function isOpenAtIPv6(hostIP: string): boolean {
  return hostIP === '' || hostIP.includes(':')
}

/** Whether no program can open this port at all IPv4 addresses of the node, because the name server of the node has it at one of them. */
export function meetsNameServer(port: number, hostIP: string): boolean {
  return port === nameServerPort && (hostIP === '' || hostIP === '0.0.0.0')
}

const nameServerPort = 53

/** Why no packet for a pod has this IPv6 address as its destination, to follow `is`; undefined: one may have. */
export function whyUnreachable(hostIP: string): string | undefined {
  const address = canonicalIPv6(hostIP)
  if (address === undefined || address === '::') return undefined
  // The kernel forwards nothing to or from the first two.
  if (address === '::1') return 'the loopback address'
  if (/^fe[89ab]/.test(address)) return 'an address of the link'
  if (address.startsWith('ff')) return 'a multicast address'
  return address.includes('.') ? 'an IPv4-mapped address' : undefined
}

/**
 * Whether one port cannot be open at both. As Kubernetes, '' and `0.0.0.0` meet every address (CheckConflict in
 * pkg/scheduler/framework/types.go); `::` meets every one of IPv6, too.
 */
export function hostIPsMeet(one: string, other: string): boolean {
  const [a, b] = [hostAddress(one), hostAddress(other)]
  return a === b || covers(a, b) || covers(b, a)
}

/** As `hostIPsMeet`, with one of many, each in the form of `hostAddress`. */
export function meetsOneOf(
  hostIP: string,
  others: Pick<ReadonlyMap<string, unknown>, 'has' | 'keys' | 'size'>,
): boolean {
  const ip = hostAddress(hostIP)
  if (others.size === 0) return false
  if (others.has(ip) || others.has('') || others.has('0.0.0.0')) return true
  if (ip === '::') return [...others.keys()].some((other) => covers(ip, other))
  return covers(ip, '') || (others.has('::') && covers('::', ip))
}

/** One text for each address: those of IPv6 have several. */
export function hostAddress(hostIP: string): string {
  return canonicalIPv6(hostIP) ?? hostIP
}

function covers(all: string, ip: string): boolean {
  return all === '' || all === '0.0.0.0' || (all === '::' && !isIPv4(ip))
}
