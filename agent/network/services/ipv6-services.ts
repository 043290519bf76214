/** Services as they are in IPv6: states whose addresses and endpoints are those of `ipv6`. */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'

/** By `namespace/name`. */
type Services = ReadonlyMap<string, ServiceState>

/** undefined: it has no part in IPv6. */
export function inIPv6({ ipv6, ...service }: ServiceState): ServiceState | undefined {
  if (ipv6 === undefined) return undefined
  const { externalIPs = [], loadBalancerIPs = [], sourceRanges = [], clusterIPs, endpoints } = ipv6
  return { ...service, clusterIPs, externalIPs, loadBalancerIPs, sourceRanges, endpoints }
}

/** Gives those with a part in IPv6. A Service that is the same object as before is so in what this gives, too. */
export function ipv6Services(): (services: Services) => Services {
  const made = new WeakMap<ServiceState, ServiceState>()
  return (services) => {
    const found = new Map<string, ServiceState>()
    for (const [key, service] of services) {
      const view = made.get(service) ?? inIPv6(service)
      if (view === undefined) continue
      made.set(service, view)
      found.set(key, view)
    }
    return found
  }
}
