/** IPv6 addresses and ranges as numbers: `fd00:10:244::/56`. */
import { parseAddressBlock } from './address-block.ts'
import { canonicalIPv6 } from './ip-address.ts'

export type IPv6Range = {
  /** The first address of the range, as a number. */
  readonly first: bigint
  readonly bits: number
}

/** The address as a number; undefined when it is not an IPv6 address. */
export function parseIPv6(text: string): bigint | undefined {
  return parseIPv6Range(`${text}/128`)?.first
}

/** In canonical form. */
export function formatIPv6(address: bigint): string {
  const digits = address.toString(16).padStart(32, '0')
  const groups = (digits.match(/.{4}/g) ?? []).join(':')
  return canonicalIPv6(groups) ?? groups
}

/** undefined when it is not an IPv6 range, or has bits set beyond its mask. */
export function parseIPv6Range(text: string): IPv6Range | undefined {
  const range = maskedIPv6Range(text)
  const whole = range && maskedIPv6Range(text.replace(/\/\d+$/, '/128'))
  return range?.first === whole?.first ? range : undefined
}

export function formatIPv6Range({ first, bits }: IPv6Range): string {
  return `${formatIPv6(first)}/${bits}`
}

/** The first and the last address. */
export function boundsOfIPv6Range(range: IPv6Range): readonly [first: bigint, last: bigint] {
  return [range.first, range.first + sizeOfIPv6Range(range) - 1n]
}

/** The range that the text names, as kube-apiserver reads it: bits beyond its mask do not count. undefined: it is not an IPv6 range. */
export function maskedIPv6Range(text: string): IPv6Range | undefined {
  const block = parseAddressBlock(text)
  return block?.version === 6 ? { first: numberOf(block.bytes), bits: block.bits } : undefined
}

/** 2000::/3 and fc00::/7: addresses of single machines that routers forward (RFC 4291, RFC 4193). */
export function isRoutableIPv6(address: bigint): boolean {
  return address >> 125n === 1n || address >> 121n === 0x7en
}

/** How many addresses it has. */
export function sizeOfIPv6Range({ bits }: Pick<IPv6Range, 'bits'>): bigint {
  return 1n << BigInt(128 - bits)
}

/** Whether they have an address in common. */
export function ipv6RangesOverlap(one: IPv6Range, other: IPv6Range): boolean {
  const [wide, narrow] = one.bits <= other.bits ? [one, other] : [other, one]
  return narrow.first >= wide.first && narrow.first < wide.first + sizeOfIPv6Range(wide)
}

/** Whether the range has the address; false where one of them is not of IPv6. */
export function isInIPv6Range(ip: string, range: string): boolean {
  const [one, other] = [parseIPv6Range(`${ip}/128`), parseIPv6Range(range)]
  return one !== undefined && other !== undefined && ipv6RangesOverlap(one, other)
}

function numberOf(bytes: readonly number[]): bigint {
  return bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
}
