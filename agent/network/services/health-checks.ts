/** What load balancers outside the fleet ask each node: whether it has endpoints of a Local Service (pkg/proxy/healthcheck). */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'

export type ServiceHealth = {
  readonly namespace: string
  readonly name: string
  /** Ready ones on this node. */
  readonly localEndpoints: number
}

export type HealthAnswer = {
  /** 200: send clients here. 503: to other nodes. */
  readonly status: 200 | 503
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** By `healthCheckNodePort`. Only Services of the type LoadBalancer with the external policy Local have one. */
export function serviceHealths(
  services: ReadonlyMap<string, ServiceState>,
  nodeName: string,
): ReadonlyMap<number, ServiceHealth> {
  const healths = new Map<number, ServiceHealth>()
  for (const service of services.values()) {
    const { namespace, name, type, externalTrafficPolicy, healthCheckNodePort } = service
    if (type !== 'LoadBalancer' || externalTrafficPolicy !== 'Local' || healthCheckNodePort === undefined) continue
    healths.set(healthCheckNodePort, { namespace, name, localEndpoints: localEndpoints(service, nodeName) })
  }
  return healths
}

/** A pod with an address of each family is one. */
function localEndpoints(service: ServiceState, nodeName: string): number {
  const { endpoints, ipv6, publishNotReadyAddresses = false } = service
  const counts = [endpoints, ipv6?.endpoints ?? []].map((sets) => {
    const all = sets.flatMap(({ addresses }) => addresses)
    const used = all.filter(({ node, ready }) => node === nodeName && (ready || publishNotReadyAddresses))
    return new Set(used.map(({ ip }) => ip)).size
  })
  return Math.max(...counts)
}

/** `isInPlace`: this node has its rules. The body is that of kube-proxy, to the byte. */
export function healthAnswer(
  { namespace, name, localEndpoints: count }: ServiceHealth,
  isInPlace: boolean,
): HealthAnswer {
  const body = { service: { namespace, name }, localEndpoints: count, serviceProxyHealthy: isInPlace }
  return {
    status: count > 0 && isInPlace ? 200 : 503,
    headers: {
      'Content-Type': 'application/json',
      'X-Content-Type-Options': 'nosniff',
      'X-Load-Balancing-Endpoint-Weight': String(count),
    },
    body: JSON.stringify(body, undefined, '\t'),
  }
}
