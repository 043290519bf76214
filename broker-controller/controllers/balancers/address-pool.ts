/** The addresses that the fleet may give to load balancers: `192.168.1.240-192.168.1.250`, `192.168.2.0/28`, `192.168.1.9`. */
import { type Cidr, formatIPv4, parseCidr, sizeOfCidr } from '../../../api/text/cidr.ts'

export type AddressRange = {
  /** As it was written. */
  readonly text: string
  /** Both as numbers, as in `Cidr.first`. */
  readonly first: number
  readonly last: number
}
/** In the order in which they are assigned; no address is in two of them. */
export type AddressPool = readonly AddressRange[]

/** More than a network of a house has; each pass over the Services may go through all of them. */
export const mostPoolAddresses = 4_096

/** undefined: it is no range of IPv4 addresses, or ends before it begins. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const cidr = parseCidr(text)
  if (cidr !== undefined) return { text, ...boundsOf(cidr) }
  const [from = '', to = from, ...more] = text.split('-').map((part) => part.trim())
  const [one, other] = [parseCidr(`${from}/32`), parseCidr(`${to}/32`)]
  if (one === undefined || other === undefined || more.length > 0 || other.first < one.first) return undefined
  return { text, first: one.first, last: other.first }
}

export function boundsOf(cidr: Cidr): { readonly first: number; readonly last: number } {
  return { first: cidr.first, last: cidr.first + sizeOfCidr(cidr) - 1 }
}

type Bounds = Pick<AddressRange, 'first' | 'last'>

export function rangesOverlap(one: Bounds, other: Bounds): boolean {
  return one.first <= other.last && other.first <= one.last
}

/** Whether the pool has the address and may give it away: .0 and .255 are no addresses of machines in most networks. */
export function poolHas(pool: AddressPool, ip: string): boolean {
  const address = parseCidr(`${ip}/32`)?.first
  return (
    address !== undefined && isUsable(address) && pool.some(({ first, last }) => address >= first && address <= last)
  )
}

/**
 * The addresses that are not `taken` when they are asked for, in their order. What was taken stays taken: all of them together cost one pass
 * over the pool, however many Services ask.
 */
export function* freeAddresses(pool: AddressPool, taken: { has(ip: string): boolean }): Generator<string, undefined> {
  for (const { first, last } of pool) {
    for (let address = first; address <= last; address++) {
      const ip = formatIPv4(address)
      if (isUsable(address) && !taken.has(ip)) yield ip
    }
  }
}

export function poolText(pool: AddressPool): string {
  return pool.map(({ text }) => text).join(', ')
}

function isUsable(address: number): boolean {
  return address % 256 !== 0 && address % 256 !== 255
}
