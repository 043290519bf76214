/**
 * The route of this machine to the addresses of Services, of IPv6. The kernel looks for a route before the rules of the output hook lead a packet
 * elsewhere, and has none where there is no route to other networks. It is one of the loopback interface: the kernel refuses what no rule leads elsewhere, and
 * nothing leaves the machine (Linux, net/ipv6/route.c, fib6_is_reject; before 4.18 it refuses all, as without the route).
 */
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { formatIPv6Range, parseIPv6Range } from '../../../api/text/ipv6-range.ts'
import type { HostIPv6Route, RouteStep, ServiceRoute } from './host-routes.ts'

export const loopback = 'lo'
/** As the kernel lists it: a route that refuses packets. */
const listedAs = [loopback, '*']

/** Undefined: the message names no IPv6 range. */
export function serviceRouteOf(
  { serviceCIDR }: NonNullable<NetworkMessage['ipv6']>,
  { ipv6 }: NetworkPeer,
): ServiceRoute | undefined {
  const range = parseIPv6Range(serviceCIDR)
  return range && { range: formatIPv6Range(range), ...(ipv6?.address && { source: ipv6.address }) }
}

/** The kernel's list of all routes does not show the source of one: what is there is compared by what was made. `present`: by range. */
export function serviceRouteSteps(
  wanted: ServiceRoute | undefined,
  made: readonly ServiceRoute[] = [],
  present: ReadonlyMap<string, readonly HostIPv6Route[]>,
): readonly RouteStep[] {
  const has = ({ range }: ServiceRoute) => present.get(range)?.some((one) => listedAs.includes(one.interface)) === true
  const isWanted = ({ range, source }: ServiceRoute) => wanted?.range === range && wanted.source === source
  const gone = made.filter((one) => !isWanted(one) && has(one))
  const isThere = wanted === undefined || (made.some(isWanted) && has(wanted))
  return [
    ...gone.map((route) => ({ step: 'removeServiceRoute', route }) as const),
    ...(isThere ? [] : [{ step: 'addServiceRoute', route: wanted } as const]),
  ]
}
