/** Networks of this machine that have addresses which the fleet uses for pods or Services. */
import { cidrsOverlap, formatCidr, parseCidr } from '../../../api/text/cidr.ts'
import { ipv6RangesOverlap, parseIPv6Range } from '../../../api/text/ipv6-range.ts'
import type { FamilyNetwork } from './family-network.ts'
import type { HostIPv6Route, HostRoute } from './host-routes.ts'
import { tunnelDevice, wireguardDevice } from './tunnels.ts'

/**
 * Interfaces that are not on a network of the machine: the bridges of Docker's networks, one of which the pods of this
 * node have, loopback and tunnels.
 */
const others = new RegExp(`^(br-[0-9a-f]{12}|lo|\\*|${tunnelDevice}|${wireguardDevice})$`)

/** Ranges of one family; `ipv6` in a fleet with both. */
export type FleetRanges = Ranges & { readonly ipv6?: Ranges }
type Ranges = Pick<FamilyNetwork, 'clusterCIDR' | 'serviceCIDR'>

export type MachineRoute = HostRoute | HostIPv6Route

/**
 * Each as a sentence with a remedy, once for each network. Packets to the range of Services are dropped where no Service has the address,
 * and routes to pods are narrower than that of a link: machines there are not reached. A wider network behind a gateway stays
 * reachable, except for these ranges.
 */
export function homeNetworkOverlaps(fleet: FleetRanges, routes: readonly MachineRoute[]): readonly string[] {
  return homeNetworks(fleet, routes).map(({ found, remedy }) => `${found}: its machines may not be reached; ${remedy}`)
}

export type HomeNetwork = { readonly found: string; readonly remedy: string }

/** The same, without what follows for a node that has routes. */
export function homeNetworks(
  { clusterCIDR, serviceCIDR, ipv6 }: FleetRanges,
  routes: readonly MachineRoute[],
): readonly HomeNetwork[] {
  const ranges = [{ clusterCIDR, serviceCIDR }, ...(ipv6 === undefined ? [] : [ipv6])].flatMap((family) => [
    { field: 'clusterCIDR', text: family.clusterCIDR },
    { field: 'serviceCIDR', text: family.serviceCIDR },
  ])
  const found = routes
    .filter((route) => route.gateway === undefined && !others.test(route.interface))
    .flatMap((route) =>
      ranges
        .filter(({ text }) => hasAddressesOf(route, text))
        .map(({ field, text }) => ({
          found: `the network ${rangeText(route)} on ${route.interface} of this machine has addresses of ${field} ${text}`,
          remedy: `give the fleet a ${field} that none of its networks has, or renumber ${route.interface}`,
        })),
    )
  return [...new Map(found.map((one) => [one.found, one])).values()]
}

function hasAddressesOf({ range }: MachineRoute, text: string): boolean {
  if (typeof range !== 'string') {
    const other = parseCidr(text)
    return other !== undefined && cidrsOverlap(other, range)
  }
  const [one, other] = [parseIPv6Range(range), parseIPv6Range(text)]
  return one !== undefined && other !== undefined && ipv6RangesOverlap(one, other)
}

function rangeText({ range }: MachineRoute): string {
  return typeof range === 'string' ? range : formatCidr(range)
}
