/** State shared by all Services: the ranges of their addresses, and the order in which they are written. */
import type { IPv6Ranges } from '../../../api/network/ipv6-ranges.ts'
import { defaultServiceCIDR } from '../../../api/network/service-range.ts'
import { formatCidr, formatIPv4, parseCidr, sizeOfCidr } from '../../../api/text/cidr.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import {
  formatIPv6,
  formatIPv6Range,
  parseIPv6,
  parseIPv6Range,
  sizeOfIPv6Range,
} from '../../../api/text/ipv6-range.ts'
import { type Mutex, mutex } from '../../../daemon/mutex.ts'

/** Addresses of one family, by their place in the range. */
export type ServiceRange = {
  readonly family: IPFamily
  readonly text: string
  /** Places 1 to `usable` may be given; place 0 is the address of the range itself. */
  readonly usable: number
  at(place: number): string
  /** undefined: the address is not in the range. */
  placeOf(ip: string): number | undefined
}

export type ServiceNetwork = {
  /** One of IPv4, and in a fleet with both families one of IPv6 behind it. */
  readonly ranges: readonly ServiceRange[]
  readonly oneAtATime: Mutex
}

/** Throws TypeError for a range that `serviceCidrProblem` (api/network/service-range.ts) or `ipv6Ranges` refuses. */
export function serviceNetwork(
  serviceCIDR: string = defaultServiceCIDR,
  ipv6?: Pick<IPv6Ranges, 'serviceCIDR'>,
): ServiceNetwork {
  const ranges = [ipv4Range(serviceCIDR), ...(ipv6 === undefined ? [] : [ipv6Range(ipv6.serviceCIDR)])]
  return { ranges, oneAtATime: mutex() }
}

/** The last address, that of broadcasts, is not given (ipallocator.go). */
function ipv4Range(serviceCIDR: string): ServiceRange {
  const range = parseCidr(serviceCIDR)
  if (range === undefined) throw new TypeError(`${serviceCIDR} is not a CIDR`)
  const size = sizeOfCidr(range)
  return {
    family: 'IPv4',
    text: formatCidr(range),
    usable: size - 2,
    at: (place) => formatIPv4(range.first + place),
    placeOf(ip) {
      const address = parseCidr(`${ip}/32`)?.first
      const place = address === undefined ? -1 : address - range.first
      return place >= 0 && place < size ? place : undefined
    },
  }
}

function ipv6Range(serviceCIDR: string): ServiceRange {
  const range = parseIPv6Range(serviceCIDR)
  if (range === undefined) throw new TypeError(`${serviceCIDR} is not an IPv6 CIDR`)
  const size = sizeOfIPv6Range(range)
  return {
    family: 'IPv6',
    text: formatIPv6Range(range),
    usable: Number(size) - 1,
    at: (place) => formatIPv6(range.first + BigInt(place)),
    placeOf(ip) {
      const address = parseIPv6(ip)
      const place = address === undefined ? -1n : address - range.first
      return place >= 0n && place < size ? Number(place) : undefined
    },
  }
}
