/** IPv4 ranges as text: `10.244.3.0/24`. */

export type Cidr = {
  /** The first address of the range, as a number. */
  readonly first: number
  readonly bits: number
}

/** undefined when it is not an IPv4 range, or has bits set beyond its mask. */
export function parseCidr(text: string): Cidr | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text)
  if (match === null) return undefined
  const [a = 0, b = 0, c = 0, d = 0, bits = 0] = match.slice(1).map(Number)
  if ([a, b, c, d].some((part) => part > 255) || bits > 32) return undefined
  const first = ((a * 256 + b) * 256 + c) * 256 + d
  return first % sizeOfCidr({ bits }) === 0 ? { first, bits } : undefined
}

/** The range that an address with a mask is in: `192.168.1.7/24`. undefined: not an IPv4 one. */
export function maskedCidr(text: string): Cidr | undefined {
  const [address = '', bits = ''] = text.split('/')
  const own = parseCidr(`${address}/32`)
  if (own === undefined || !/^\d{1,2}$/.test(bits) || Number(bits) > 32) return undefined
  return { first: own.first - (own.first % sizeOfCidr({ bits: Number(bits) })), bits: Number(bits) }
}

export function formatCidr({ first, bits }: Cidr): string {
  return `${formatIPv4(first)}/${bits}`
}

/** The text of an address that is given as a number, as in `Cidr.first`. */
export function formatIPv4(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')
}

/** How many addresses it has. */
export function sizeOfCidr({ bits }: Pick<Cidr, 'bits'>): number {
  return 2 ** (32 - bits)
}

/** Whether they have an address in common. */
export function cidrsOverlap(one: Cidr, other: Cidr): boolean {
  const [wide, narrow] = one.bits <= other.bits ? [one, other] : [other, one]
  return narrow.first >= wide.first && narrow.first < wide.first + sizeOfCidr(wide)
}

/** Whether the range has the address; false where one of them is not of IPv4. */
export function isWithin(ip: string, range: string): boolean {
  const [one, other] = [parseCidr(`${ip}/32`), parseCidr(range)]
  return one !== undefined && other !== undefined && cidrsOverlap(one, other)
}

/** Whether all addresses of `narrow` are in `wide`. */
export function cidrContains(wide: Cidr, narrow: Cidr): boolean {
  return wide.bits <= narrow.bits && cidrsOverlap(wide, narrow)
}
