/** IPv4 or IPv6 ranges as Go's ParseCIDRSloppy reads them: leading zeros and bits beyond the mask are accepted. */
import { canonicalIPv6, ipVersion } from './ip-address.ts'

export type AddressBlock = {
  readonly version: 4 | 6
  /** Bytes of the first address of the range: 4 or 16. */
  readonly bytes: readonly number[]
  /** The length of the mask. */
  readonly bits: number
}

/** undefined when it is not a range. */
export function parseAddressBlock(text: string): AddressBlock | undefined {
  const match = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text)
  const [, address = '', length = ''] = match ?? []
  const bytes = bytesOf(address)
  const bits = Number(length)
  if (match === null || bytes === undefined || bits > bytes.length * 8) return undefined
  return { version: bytes.length === 4 ? 4 : 6, bytes: bytes.map((byte, index) => byte & maskByte(bits, index)), bits }
}

/** Whether one of the ranges, which commas separate, is of IPv6. */
export function hasIPv6Range(text: string): boolean {
  return text.split(',').some((range) => parseAddressBlock(range.trim())?.version === 6)
}

/** Whether all addresses of `narrow` are in `wide`, and `wide` has others. */
export function isStrictlyWithin(narrow: AddressBlock, wide: AddressBlock): boolean {
  if (narrow.version !== wide.version || wide.bits >= narrow.bits) return false
  return wide.bytes.every((byte, index) => byte === ((narrow.bytes[index] ?? 0) & maskByte(wide.bits, index)))
}

/** Whether the range has the address; false where they are of two families. */
export function rangeHas(range: string, ip: string): boolean {
  const block = parseAddressBlock(range)
  const address = bytesOf(ip)
  return block !== undefined && address !== undefined && blockHas(block, address)
}

/** The first of some ranges that has an address; many addresses are looked up in the same ranges. Throws for what is not a range. */
export function firstRangeOf<R extends string>(ranges: readonly R[]): (ip: string) => R | undefined {
  const blocks = ranges.map((range) => {
    const block = parseAddressBlock(range)
    if (block === undefined) throw new Error(`${range} is not a CIDR`)
    return { range, block }
  })
  return (ip) => {
    const address = bytesOf(ip)
    return address && blocks.find(({ block }) => blockHas(block, address))?.range
  }
}

function blockHas({ bytes, bits }: AddressBlock, address: readonly number[]): boolean {
  if (bytes.length !== address.length) return false
  return bytes.every((byte, index) => byte === ((address[index] ?? 0) & maskByte(bits, index)))
}

/** The part of the mask that the byte with this index has. */
function maskByte(bits: number, index: number): number {
  const ones = Math.min(8, Math.max(0, bits - index * 8))
  return (0xff << (8 - ones)) & 0xff
}

/** An IPv6 address has at most 45 characters; zeros before numbers are more. */
const longestAddress = 128

function bytesOf(address: string): readonly number[] | undefined {
  // First: the pattern needs quadratic time.
  if (address.length > longestAddress) return undefined
  const plain = address.replace(/(^|[.:])0+(?=\d+(\.|$))/g, '$1')
  if (!address.includes(':')) return ipVersion(plain) === 4 ? plain.split('.').map(Number) : undefined
  const canonical = canonicalIPv6(address)
  return canonical === undefined ? undefined : groupsOf(canonical).flatMap((group) => [group >> 8, group & 0xff])
}

/** The eight groups of an address in canonical form. */
function groupsOf(address: string): readonly number[] {
  const [left = '', right = ''] = address.split('::')
  const [before, after] = [partsOf(left), partsOf(right)]
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
}

function partsOf(text: string): readonly number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
    return part.includes('.') ? [a * 256 + b, c * 256 + d] : [Number.parseInt(part, 16)]
  })
}
