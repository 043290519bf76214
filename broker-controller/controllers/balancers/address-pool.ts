/**
 * The addresses that the fleet may give to load balancers: `192.168.1.240-192.168.1.250`, `192.168.2.0/28`, `192.168.1.9`, and the same of
 * IPv6: `fd00:9::240-fd00:9::250`, `fd00:9::2:0/120`.
 */
import { formatIPv4, parseCidr, sizeOfCidr } from '../../../api/text/cidr.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import { boundsOfIPv6Range, formatIPv6, parseIPv6Range } from '../../../api/text/ipv6-range.ts'

export type AddressBounds = {
  readonly family: IPFamily
  /** Both as numbers: 32 bits of IPv4, 128 of IPv6. */
  readonly first: bigint
  readonly last: bigint
}
export type AddressRange = AddressBounds & {
  /** As it was written. */
  readonly text: string
}
/** In the order in which they are assigned; no address is in two of them. */
export type AddressPool = readonly AddressRange[]

/** Limit for each family. More than a local network has; each pass over the Services may go through all of them. */
export const mostPoolAddresses = 4_096

/** undefined: it is not a range of addresses of one family, or ends before it begins. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const network = boundsOf(text)
  if (network !== undefined) return { text, ...network }
  const [from = '', to = from, ...more] = text.split('-').map((part) => part.trim())
  const [one, other] = [boundsOfAddress(from), boundsOfAddress(to)]
  if (one === undefined || other === undefined || more.length > 0) return undefined
  if (one.family !== other.family || other.first < one.first) return undefined
  return { text, family: one.family, first: one.first, last: other.first }
}

/** The first and the last address of a network, as `192.168.2.0/28`; undefined: it is not a network. */
export function boundsOf(text: string): AddressBounds | undefined {
  const cidr = parseCidr(text)
  if (cidr !== undefined) {
    const first = BigInt(cidr.first)
    return { family: 'IPv4', first, last: first + BigInt(sizeOfCidr(cidr)) - 1n }
  }
  const range = parseIPv6Range(text)
  if (range === undefined) return undefined
  const [first, last] = boundsOfIPv6Range(range)
  return { family: 'IPv6', first, last }
}

export function rangesOverlap(one: AddressBounds, other: AddressBounds): boolean {
  return one.family === other.family && one.first <= other.last && other.first <= one.last
}

/** Whether the pool has the address and may give it away; see `isUsable`. */
export function poolHas(pool: AddressPool, ip: string): boolean {
  const address = boundsOfAddress(ip)
  return address !== undefined && isUsable(address) && pool.some((range) => rangesOverlap(range, address))
}

/**
 * The addresses that are not `taken` when they are asked for, in their order; those of IPv6 in canonical form. What was taken stays taken: all
 * of them together cost one pass over the pool, however many Services ask.
 */
export function* freeAddresses(pool: AddressPool, taken: { has(ip: string): boolean }): Generator<string, undefined> {
  for (const { family, first, last } of pool) {
    for (let address = first; address <= last; address++) {
      const ip = family === 'IPv4' ? formatIPv4(Number(address)) : formatIPv6(address)
      if (isUsable({ family, first: address }) && !taken.has(ip)) yield ip
    }
  }
}

/** The addresses of one family. */
export function poolOf(pool: AddressPool, family: IPFamily): AddressPool {
  return pool.filter((range) => range.family === family)
}

export function poolText(pool: AddressPool): string {
  return pool.map(({ text }) => text).join(', ')
}

function boundsOfAddress(ip: string): AddressBounds | undefined {
  return boundsOf(`${ip}/${ip.includes(':') ? 128 : 32}`)
}

/**
 * .0 and .255 are not addresses of machines in most IPv4 networks. In IPv6 the first address of a /64 is that of all its routers
 * (RFC 4291, 2.6.1), and every node is one.
 */
function isUsable({ family, first }: Pick<AddressBounds, 'family' | 'first'>): boolean {
  if (family === 'IPv6') return BigInt.asUintN(64, first) !== 0n
  const last = first % 256n
  return last !== 0n && last !== 255n
}
