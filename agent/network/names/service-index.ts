/** Finds names by the address that they belong to, and namespaces. */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'

export interface ServiceIndex {
  /** A Service is in it. */
  hasNamespace(namespace: string): boolean
  /** `web.default` of a Service with this address; else `web-0.web.default` of each ready endpoint with a host name. */
  namesOf(address: string): readonly string[]
}

/** Is built at the first question: few ask for names of addresses, and Services change more often. */
export function serviceIndex(services: ReadonlyMap<string, ServiceState>): ServiceIndex {
  let built: Built | undefined
  const index = () => {
    built ??= build(services)
    return built
  }
  return {
    hasNamespace: (namespace) => index().namespaces.has(namespace),
    namesOf: (address) => index().services.get(address) ?? index().endpoints.get(address) ?? [],
  }
}

type Built = {
  readonly namespaces: ReadonlySet<string>
  readonly services: ReadonlyMap<string, readonly string[]>
  readonly endpoints: ReadonlyMap<string, readonly string[]>
}

function build(services: ReadonlyMap<string, ServiceState>): Built {
  const namespaces = new Set<string>()
  const byClusterIP = new Map<string, readonly string[]>()
  const byEndpoint = new Map<string, string[]>()
  for (const { namespace, name, type, clusterIPs, endpoints, ipv6 } of services.values()) {
    namespaces.add(namespace)
    if (type === 'ExternalName') continue
    const addresses = [...clusterIPs, ...(ipv6?.clusterIPs ?? [])]
    for (const address of addresses) byClusterIP.set(address, [`${name}.${namespace}`])
    const all = [...endpoints, ...(ipv6?.endpoints ?? [])].flatMap((set) => set.addresses)
    for (const { ip, hostname } of all.filter(({ ready, hostname }) => ready && hostname)) {
      const names = byEndpoint.get(ip) ?? []
      const own = `${hostname}.${name}.${namespace}`
      if (!names.includes(own)) byEndpoint.set(ip, [...names, own])
    }
  }
  return { namespaces, services: byClusterIP, endpoints: byEndpoint }
}
