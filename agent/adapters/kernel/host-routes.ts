/** The routes of the kernel. */
import { endianness } from 'node:os'
import { join } from 'node:path'
import { type Cidr, formatCidr, formatIPv4, parseCidr } from '../../../api/text/cidr.ts'
import { formatIPv6 } from '../../../api/text/ipv6-range.ts'
import { textOf } from './kernel-files.ts'

export type Route = {
  readonly interface: string
  readonly range: Cidr
  /** Reached without a gateway. */
  readonly direct: boolean
  /** The next hop; undefined where it is reached directly. */
  readonly gateway?: string
  /** The kernel uses the route to a range with the lowest metric. */
  readonly metric?: number
}

/** Those of IPv4 in the main table, without the default route. Empty if the file does not exist. */
export function readRoutes(root: string): readonly Route[] {
  const text = textOf(join(root, 'proc/net/route')) ?? ''
  return text.split('\n').flatMap((line) => {
    const [name, destination, gateway = '', , , , metric, mask] = line.trim().split(/\s+/)
    if (name === undefined || !/^[0-9A-F]{8}$/.test(destination ?? '') || !/^[0-9A-F]{8}$/.test(mask ?? '')) return []
    const bits = addressOf(mask).toString(2).split('1').length - 1
    const range = parseCidr(formatCidr({ first: addressOf(destination), bits }))
    if (range === undefined || bits === 0) return []
    const direct = /^0+$/.test(gateway)
    const hop = direct ? {} : { gateway: formatIPv4(addressOf(gateway)) }
    return [{ interface: name, range, direct, ...hop, metric: Number(metric) }]
  })
}

/** `range` and `gateway` in canonical form. */
export type IPv6Route = Omit<Route, 'range'> & { readonly range: string }

/** Flags of linux/ipv6_route.h. */
const ipv6Flags = { reject: 0x0200, anycast: 0x100000, local: 0x80000000 } as const

/**
 * Those of IPv6 in all tables but for the machine's own addresses, multicast and the default route. `*` is the interface of one that
 * refuses packets. Empty if the file does not exist.
 */
export function readIPv6Routes(root: string): readonly IPv6Route[] {
  const text = textOf(join(root, 'proc/net/ipv6_route')) ?? ''
  return text.split('\n').flatMap((line) => {
    const row = line.trim().split(/\s+/)
    const [destination = '', length = '', , , hop = '', metric = '', , , flagText = '', name = ''] = row
    const [bits, flags] = [Number.parseInt(length, 16), Number.parseInt(flagText, 16)]
    if (!/^[0-9a-f]{32}$/.test(destination) || !/^[0-9a-f]{32}$/.test(hop) || !(bits > 0 && bits <= 128)) return []
    // >>> 0: bit 31 is the sign otherwise.
    if ((flags & (ipv6Flags.local | ipv6Flags.anycast)) >>> 0 !== 0 || destination.startsWith('ff')) return []
    const direct = /^0+$/.test(hop)
    return [
      {
        interface: (flags & ipv6Flags.reject) !== 0 ? '*' : name,
        range: `${formatIPv6(BigInt(`0x${destination}`))}/${bits}`,
        direct,
        ...(direct ? {} : { gateway: formatIPv6(BigInt(`0x${hop}`)) }),
        metric: Number.parseInt(metric, 16),
      },
    ]
  })
}

/** Both. */
export function readAllRoutes(root: string): readonly (Route | IPv6Route)[] {
  return [...readRoutes(root), ...readIPv6Routes(root)]
}

/** The file contains addresses in the byte order of the processor. */
function addressOf(hex = ''): number {
  const bytes = Buffer.from(hex, 'hex')
  return endianness() === 'LE' ? bytes.readUInt32LE() : bytes.readUInt32BE()
}
