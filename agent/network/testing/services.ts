/** Services as nodes receive them. */
import type { EndpointAddressState, ServiceState } from '../../../api/network/service-endpoints.ts'

export type GivenService = Partial<Omit<ServiceState, 'endpoints' | 'ports'>> & {
  readonly addresses?: readonly EndpointAddressState[]
  readonly nodePort?: number
}

/** `shop/web`: port 80 of 10.96.0.7 leads to port 8080 of its endpoints. */
export function aService({ addresses = [], nodePort, ...given }: GivenService): ServiceState {
  return {
    namespace: 'shop',
    name: 'web',
    type: 'ClusterIP',
    clusterIPs: ['10.96.0.7'],
    internalTrafficPolicy: 'Cluster',
    externalTrafficPolicy: 'Cluster',
    ...given,
    ports: [{ port: 80, protocol: 'TCP', ...(nodePort !== undefined && { nodePort }) }],
    endpoints: [{ ports: [{ port: 8080, protocol: 'TCP' }], addresses: [...addresses] }],
  }
}

/** Ready, if nothing else is given. */
export function endpointOn(node: string, ip: string, given: Partial<EndpointAddressState> = {}): EndpointAddressState {
  return { ip, node, ready: true, serving: true, terminating: false, ...given }
}
