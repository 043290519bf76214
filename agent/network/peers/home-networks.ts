/** Networks of this machine that have addresses which the fleet uses for pods or Services. */
import { cidrsOverlap, formatCidr, parseCidr } from '../../../api/text/cidr.ts'
import type { PeerNetwork } from './peer-network.ts'
import type { HostRoute } from './route-steps.ts'
import { tunnelDevice, wireguardDevice } from './tunnels.ts'

/** The bridges of Docker's networks, one of which the pods of this node have, and interfaces that are no network of the machine. */
const others = new RegExp(`^(br-[0-9a-f]{12}|lo|\\*|${tunnelDevice}|${wireguardDevice})$`)

/**
 * Each as a sentence with a remedy, once for each network. Packets to the range of Services are dropped where no Service has the address,
 * and routes to pods are narrower than that of a link: machines there are not reached. A wider network behind a gateway stays
 * reachable, except for these ranges.
 */
export function homeNetworkOverlaps(
  { clusterCIDR, serviceCIDR }: Pick<PeerNetwork, 'clusterCIDR' | 'serviceCIDR'>,
  routes: readonly HostRoute[],
): readonly string[] {
  const ranges = Object.entries({ clusterCIDR, serviceCIDR }).flatMap(([field, text]) => {
    const range = parseCidr(text)
    return range === undefined ? [] : [{ field, text, range }]
  })
  const found = routes
    .filter((route) => route.gateway === undefined && !others.test(route.interface))
    .flatMap((route) =>
      ranges
        .filter(({ range }) => cidrsOverlap(range, route.range))
        .map(
          ({ field, text }) =>
            `the network ${formatCidr(route.range)} on ${route.interface} of this machine has addresses of ${field} ${text}: its machines may not be reached; give the fleet a ${field} that none of its networks has, or renumber ${route.interface}`,
        ),
    )
  return [...new Set(found)]
}
